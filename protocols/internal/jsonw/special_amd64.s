// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Repeats the eight bytes of AX in a register.
#define REPEAT(x) \
	MOVQ       AX, x \
	PUNPCKLQDQ x, x

// One bit for each of the 16 bytes at offset: in wide those that are not ASCII, in mask the special ones. c^2 is at most 0x20 for the
// quote and control characters only.
#define SPECIAL(offset, mask, wide) \
	MOVOU    offset(SI), X0 \
	MOVO     X0, X1         \
	PMOVMSKB X0, wide       \
	PXOR     X4, X1         \
	PCMPEQB  X6, X0         \
	MOVO     X1, X2         \
	PMINUB   X5, X2         \
	PCMPEQB  X1, X2         \
	POR      X2, X0         \
	PMOVMSKB X0, mask

// func special(masks *Masks, p *byte, blocks int) (wide uint64)
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
	XORQ DX, DX                    // all masks of wide bytes, or-ed

block:
	SPECIAL(0, AX, R10)
	SPECIAL(16, BX, R11)
	SPECIAL(32, R8, R12)
	SPECIAL(48, R9, R13)
	SHLQ $16, BX
	SHLQ $32, R8
	SHLQ $48, R9
	ORQ  BX, AX
	ORQ  R9, R8
	ORQ  R8, AX
	MOVQ AX, (DI)
	SHLQ $16, R11
	SHLQ $32, R12
	SHLQ $48, R13
	ORQ  R11, R10
	ORQ  R13, R12
	ORQ  R12, R10
	MOVQ R10, 32(DI)
	ORQ  R10, DX
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  block

	MOVQ DX, wide+24(FP)
	RET
