// SPDX-License-Identifier: Apache-2.0

// Package preamble removes what a harness writes in front of its system text and changes from request to request although
// it means nothing to the model. Such a line breaks every prefix cache behind it.
//
// # The billing block
//
// Claude Code 2.1.36 and later puts a text block in front of its system text:
//
//	x-anthropic-billing-header: cc_version=2.1.330.1ad; cc_entrypoint=sdk-cli; cch=97bd6;
//
// Its values change per version, entry point, first message, sub-agent, and some per request. [Strip] removes it, by
// these rules:
//
//	R1  a first system block that is nothing but the header goes as a whole, whatever keys it has
//	R2  where other text follows in the same block, the header's line goes with its newline; where it is glued to the
//	    text without a newline, it goes up to its last "key=value;"
//	R3  the same for system text that is one string
//	R4  the same for the first system or developer message of the OpenAI APIs, and Responses instructions
//
// Only the very start of the system text counts, and never anything a user or a tool wrote. Stripping twice does
// nothing more. The work is done by edits of the request: all other bytes stay.
package preamble
