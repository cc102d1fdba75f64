// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// LOAD loads the arguments of all functions. DI has dir, CX shift-1 (a shift by 64 takes two steps), R11 the mixer, R12 its factor, SI
// the hashes, BX their number. R13 counts them, and R14 is the sum.
#define LOAD \
	MOVQ dir+0(FP), DI \
	MOVQ shift+8(FP), CX \
	DECQ CX \
	MOVQ mixer+16(FP), R11 \
	MOVQ $0x9E3779B97F4A7C15, R12 \
	MOVQ hashes+24(FP), SI \
	MOVQ n+32(FP), BX \
	XORL R13, R13 \
	XORL R14, R14

// MIX sets AX to the mixed hash R13, and R8 to its index in the directory; clobbers DX.
#define MIX \
	MOVQ (SI)(R13*8), AX \
	XORQ R11, AX \
	MULQ R12 \
	XORQ DX, AX \
	MOVQ AX, R8 \
	SHRQ $1, R8 \
	SHRQ CX, R8

// GROUP sets R9 to the address of the group where the search for hash R13 begins; clobbers AX, DX, R8, R10. Sizes are those of page and group.
#define GROUP \
	MIX \
	SHLQ  $5, R8 \
	MOVQ  (DI)(R8*1), R9 \
	MOVQ  8(DI)(R8*1), R10 \
	MOVL  AX, AX \
	IMULQ R10, AX \
	SHRQ  $32, AX \
	SHLQ  $6, AX \
	ADDQ  AX, R9

// func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
TEXT ·prefetchGroups(SB), NOSPLIT, $0-48
	LOAD

group:
	GROUP
	PREFETCHT0 (R9)
	ADDQ       R9, R14
	INCQ       R13
	CMPQ       R13, BX
	JNE        group
	MOVQ       R14, sum+40(FP)
	RET

// func prefetchNext(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
// It does not branch on what it loads, so that these cache misses overlap, too.
TEXT ·prefetchNext(SB), NOSPLIT, $0-48
	LOAD

next:
	GROUP
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
	MOVQ       R14, sum+40(FP)
	RET

// func prefetchCommon(dir *leaf, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
TEXT ·prefetchCommon(SB), NOSPLIT, $0-48
	LOAD

common:
	MIX
	SHLQ  $4, R8
	MOVQ  (DI)(R8*1), R9
	SHRQ  $30, AX         // slotBits
	ANDL  $63, AX
	SHLQ  $6, AX
	PREFETCHT0 (R9)(AX*1)
	ADDQ  AX, R14
	INCQ  R13
	CMPQ  R13, BX
	JNE   common
	MOVQ  R14, sum+40(FP)
	RET
