// SPDX-License-Identifier: Apache-2.0

//go:build race

package tokenizers

const raceEnabled = true
