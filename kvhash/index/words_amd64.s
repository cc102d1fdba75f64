// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// func moveWords(dst *atomic.Uint64, src *uint64, n int)
TEXT ·moveWords(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

next:
	MOVQ (SI), AX
	MOVQ AX, (DI)
	ADDQ $8, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  next
	RET
