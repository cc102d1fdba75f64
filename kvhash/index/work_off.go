// SPDX-License-Identifier: Apache-2.0

//go:build !weftcount

package index

// work counts what lookups do, and lets tests in between their steps and the writer's, in builds with the tag weftcount.
type work struct{}

func (*work) edge(uint32) {}
func (*work) probe()      {}
func (*work) entry()      {}
func (*work) step()       {}
func (*work) acts(int)    {}
func (*work) hold()       {}
