// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Repeats the eight bytes of AX in a register.
#define REPEAT(x) \
	MOVQ       AX, x \
	PUNPCKLQDQ x, x

// mask = one bit for each of the 16 bytes at offset. c^2 is at most 0x20 for the quote and control characters only.
#define SPECIAL(offset, mask) \
	MOVOU    offset(SI), X0 \
	MOVO     X0, X1         \
	POR      X0, X7         \
	PXOR     X4, X1         \
	PCMPEQB  X6, X0         \
	MOVO     X1, X2         \
	PMINUB   X5, X2         \
	PCMPEQB  X1, X2         \
	POR      X2, X0         \
	PMOVMSKB X0, mask

// func special(masks *uint64, p *byte, blocks int) (wide int)
TEXT ·special(SB), NOSPLIT, $0-32
	MOVQ masks+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ $0x0202020202020202, AX
	REPEAT(X4)
	MOVQ $0x2020202020202020, AX
	REPEAT(X5)
	MOVQ $0x5C5C5C5C5C5C5C5C, AX   // backslashes
	REPEAT(X6)
	PXOR X7, X7                    // all bytes, or-ed

block:
	SPECIAL(0, AX)
	SPECIAL(16, BX)
	SPECIAL(32, R8)
	SPECIAL(48, R9)
	SHLQ $16, BX
	SHLQ $32, R8
	SHLQ $48, R9
	ORQ  BX, AX
	ORQ  R9, R8
	ORQ  R8, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  block

	PMOVMSKB X7, AX
	MOVQ     AX, wide+24(FP)
	RET
