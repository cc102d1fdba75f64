// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// m = mixer.mix(hash), in AX; clobbers DX. R11 has the mixer, R12 the factor.
#define MIX(hash) \
	MOVQ hash, AX \
	XORQ R11, AX \
	MULQ R12 \
	XORQ DX, AX

// func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
TEXT ·prefetchGroups(SB), NOSPLIT, $0-48
	MOVQ dir+0(FP), DI
	MOVQ shift+8(FP), CX
	MOVQ mixer+16(FP), R11
	MOVQ hashes+24(FP), SI
	MOVQ n+32(FP), BX
	MOVQ $0x9E3779B97F4A7C15, R12
	XORL R13, R13
	DECQ CX                        // a shift by 64 takes two steps

group:
	MIX((SI))
	MOVQ       AX, R8
	SHRQ       $1, R8
	SHRQ       CX, R8
	SHLQ       $5, R8              // unsafe.Sizeof(page{})
	MOVQ       (DI)(R8*1), R9      // groups
	MOVQ       8(DI)(R8*1), R10    // and their number
	MOVL       AX, AX
	IMULQ      R10, AX
	SHRQ       $32, AX
	SHLQ       $6, AX              // unsafe.Sizeof(group{})
	ADDQ       AX, R9
	PREFETCHT0 (R9)
	ADDQ       R9, R13
	ADDQ       $8, SI
	DECQ       BX
	JNZ        group
	MOVQ       R13, sum+40(FP)
	RET
