// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The operands of HALF, which are repeated in Y4 to Y15: 0x20, the space and the bit that small letters have; 'a' and 25,
// '0' and 9, a tab (9 again) and 4, each the start of a range and its size less one; '\n', '\r', '/', '\'', 0x1F and 0x7F.
DATA operands<>+0(SB)/8, $0x0D0A040930196120
DATA operands<>+8(SB)/4, $0x7F1F272F
GLOBL operands<>(SB), RODATA|NOPTR, $12

// HALF compares the 32 bytes in Y0 and sets one bit for each. blank has the blanks other than spaces, small is only of
// use for letters, and control has blanks too.
#define HALF(letter, small, digit, space, blank, line, slash, quote, high, control) \
	VPOR      Y4, Y0, Y1  \
	VPSUBB    Y5, Y1, Y1  \
	VPMINUB   Y6, Y1, Y2  \
	VPCMPEQB  Y1, Y2, Y2  \
	VPMOVMSKB Y2, letter  \
	VPSLLW    $2, Y0, Y1  \
	VPMOVMSKB Y1, small   \
	VPSUBB    Y7, Y0, Y1  \
	VPMINUB   Y8, Y1, Y2  \
	VPCMPEQB  Y1, Y2, Y2  \
	VPMOVMSKB Y2, digit   \
	VPCMPEQB  Y4, Y0, Y1  \
	VPMOVMSKB Y1, space   \
	VPSUBB    Y8, Y0, Y1  \
	VPMINUB   Y9, Y1, Y2  \
	VPCMPEQB  Y1, Y2, Y2  \
	VPMOVMSKB Y2, blank   \
	VPCMPEQB  Y10, Y0, Y1 \
	VPCMPEQB  Y11, Y0, Y2 \
	VPOR      Y1, Y2, Y2  \
	VPMOVMSKB Y2, line    \
	VPCMPEQB  Y12, Y0, Y1 \
	VPMOVMSKB Y1, slash   \
	VPCMPEQB  Y13, Y0, Y1 \
	VPMOVMSKB Y1, quote   \
	VPMOVMSKB Y0, high    \
	VPMINUB   Y14, Y0, Y1 \
	VPCMPEQB  Y1, Y0, Y1  \
	VPCMPEQB  Y15, Y0, Y2 \
	VPOR      Y1, Y2, Y2  \
	VPMOVMSKB Y2, control

// func classify(m *[8]uint64, p *byte)
TEXT ·classify(SB), NOSPLIT, $0-16
	MOVQ         m+0(FP), DI
	MOVQ         p+8(FP), SI
	VPBROADCASTB operands<>+0(SB), Y4
	VPBROADCASTB operands<>+1(SB), Y5
	VPBROADCASTB operands<>+2(SB), Y6
	VPBROADCASTB operands<>+3(SB), Y7
	VPBROADCASTB operands<>+4(SB), Y8
	VPBROADCASTB operands<>+5(SB), Y9
	VPBROADCASTB operands<>+6(SB), Y10
	VPBROADCASTB operands<>+7(SB), Y11
	VPBROADCASTB operands<>+8(SB), Y12
	VPBROADCASTB operands<>+9(SB), Y13
	VPBROADCASTB operands<>+10(SB), Y14
	VPBROADCASTB operands<>+11(SB), Y15

	// The second half, whose bits are the high ones.
	VMOVDQU 32(SI), Y0
	HALF(R8, R9, R10, R11, R12, R13, BX, CX, DX, AX)
	SHLQ $32, R8
	SHLQ $32, R9
	SHLQ $32, R10
	SHLQ $32, R11
	SHLQ $32, R12
	SHLQ $32, R13
	SHLQ $32, BX
	SHLQ $32, CX
	SHLQ $32, DX
	SHLQ $32, AX
	MOVQ R8, 0(DI)
	MOVQ R9, 8(DI)
	MOVQ R10, 16(DI)
	MOVQ R11, 24(DI)
	MOVQ BX, 32(DI)
	MOVQ CX, 40(DI)
	MOVQ DX, 48(DI)
	MOVQ AX, 56(DI)

	// The first half.
	VMOVDQU (SI), Y0
	HALF(R8, R9, R10, R11, AX, SI, BX, CX, DX, R15)
	VZEROUPPER
	ORQ  0(DI), R8
	ORQ  8(DI), R9
	ORQ  R10, 16(DI)
	ORQ  24(DI), R11
	ORQ  R12, AX
	ORQ  R13, SI
	ORQ  BX, 32(DI)
	ORQ  CX, 40(DI)
	ORQ  DX, 48(DI)
	ORQ  56(DI), R15

	ANDQ R8, R9  // small letters
	XORQ R9, R8  // capitals
	ORQ  R11, R9 // and spaces
	ORQ  SI, R8  // and line ends
	ORQ  AX, R11 // all blanks
	NOTQ AX
	ANDQ AX, R15 // control characters that are not blanks
	MOVQ R8, 0(DI)
	MOVQ R9, 8(DI)
	MOVQ R11, 24(DI)
	MOVQ R15, 56(DI)
	RET

// func hasVectors() bool
TEXT ·hasVectors(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT  done
	MOVL $1, AX
	CPUID
	ANDL $0x18000000, CX // AVX and XGETBV
	CMPL CX, $0x18000000
	JNE  done
	XORL CX, CX
	XGETBV
	ANDL $6, AX // the system saves X and Y registers
	CMPL AX, $6
	JNE  done
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $5, BX // AVX2
	ANDL $1, BX
	MOVB BX, ret+0(FP)

done:
	RET
