// SPDX-License-Identifier: Apache-2.0

//go:build !js

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyHangup sends a value to c for each SIGHUP, which reloads the configuration.
func notifyHangup(c chan<- os.Signal) { signal.Notify(c, syscall.SIGHUP) }
