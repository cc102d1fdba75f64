// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func prefetchLines(table unsafe.Pointer, lines *uint64, n int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ lines+8(FP), SI
	MOVQ n+16(FP), CX

line:
	MOVQ       (SI), AX
	SHLQ       $6, AX
	PREFETCHT0 (DI)(AX*1)
	ADDQ       $8, SI
	DECQ       CX
	JNZ        line
	RET
