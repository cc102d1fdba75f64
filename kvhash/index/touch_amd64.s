// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// m = mixer.mix(hash), in AX; clobbers DX. R11 has the mixer, R12 the factor.
#define MIX(hash) \
	MOVQ hash, AX \
	XORQ R11, AX \
	MULQ R12 \
	XORQ DX, AX

// func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int, groups *uintptr) (sum uint64)
TEXT ·prefetchGroups(SB), NOSPLIT, $0-56
	MOVQ dir+0(FP), DI
	MOVQ shift+8(FP), CX
	MOVQ mixer+16(FP), R11
	MOVQ hashes+24(FP), SI
	MOVQ n+32(FP), BX
	MOVQ groups+40(FP), R15
	MOVQ $0x9E3779B97F4A7C15, R12
	XORL R13, R13                  // the number of groups
	XORL R14, R14                  // the sum
	DECQ CX                        // a shift by 64 takes two steps

group:
	MIX((SI)(R13*8))
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
	MOVQ       R9, (R15)(R13*8)
	ADDQ       R9, R14
	INCQ       R13
	CMPQ       R13, BX
	JNE        group

	MOVQ R14, sum+48(FP)
	RET

// func prefetchNext(groups *uintptr, n int) (sum uint64)
// It does not branch, so that these cache misses overlap, too.
TEXT ·prefetchNext(SB), NOSPLIT, $0-24
	MOVQ groups+0(FP), R15
	MOVQ n+8(FP), BX
	XORL R13, R13
	XORL R14, R14                  // the sum

next:
	MOVQ       (R15)(R13*8), R9
	MOVL       60(R9), AX          // meta
	MOVL       AX, DX
	ANDL       $7, DX              // nMask
	ADDL       $3, DX              // 8 if there are groupLen entries
	ANDL       $8, DX
	SHLL       $3, DX
	SHRL       $23, AX             // passed
	NEGL       AX
	SBBL       AX, AX
	ANDL       $64, AX
	ORL        DX, AX
	PREFETCHT0 (R9)(AX*1)
	ADDQ       AX, R14
	INCQ       R13
	CMPQ       R13, BX
	JNE        next

	MOVQ R14, sum+16(FP)
	RET
