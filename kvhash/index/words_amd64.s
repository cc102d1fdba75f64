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

// func setWord(dst *atomic.Uint64, v uint64)
TEXT ·setWord(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ v+8(FP), AX
	MOVQ AX, (DI)
	RET

// func setHalf(dst *atomic.Uint32, v uint32)
TEXT ·setHalf(SB), NOSPLIT, $0-12
	MOVQ dst+0(FP), DI
	MOVL v+8(FP), AX
	MOVL AX, (DI)
	RET
