// SPDX-License-Identifier: Apache-2.0

// Package preamble keeps the start of a prompt stable across requests and reports why it changed.
//
// A prefix cache covers a prompt only up to the first byte that differs from an earlier prompt. Harnesses write text
// that changes at the start: a billing line per conversation, directories, dates, breakpoints, tools. [Stabilize]
// removes or moves it. [Compare] and [History] report where and why two prompts diverge.
//
// # The billing block
//
// Claude Code 2.1.36 and later inserts a text block before its system text:
//
//	x-anthropic-billing-header: cc_version=2.1.330.1ad; cc_entrypoint=sdk-cli; cch=97bd6;
//
// Its values change with the version, entry point, first message and sub-agent, and some with every request.
// [Stabilize] always removes it, by these rules:
//
//	R1  a first system block that is nothing but the header goes as a whole, whatever keys it has
//	R2  where other text follows in the same block, the header's line goes with its newline; where it is glued to the
//	    text without a newline, it goes up to its last "key=value;"
//	R3  the same for system text that is one string, and for messages of role system at the very front
//	R4  the same for the first system or developer message of the OpenAI APIs, and Responses instructions
//
// Only the start of the system text is examined, never text of a user or a tool. Stabilize edits the request and
// preserves all other bytes. Everything else that it can do is off by default, see [Options].
//
// # Terminology
//
//   - fragment: text that differs between users, directories, days or turns. [Rules] recognize it by its line.
//   - class: how long a fragment stays the same: static, session (of a user, directory, machine or day), turn, volatile
//     (may change with every request, and is not content).
//   - canonical prompt: the text that Compare compares, see below. The offset of a divergence is an offset in it.
//   - canonical form: a body without the parts that change but are not in the prompt, see Options.Canonical. Two
//     requests of a recorded harness that render to the same prompt have the same turns and tools in canonical form,
//     and a later request of a session starts with the turns and tools of an earlier one.
//
// # The canonical prompt
//
// It is the text of a request in the order of the template ([Prompt]), as a list of segments: tools, each as its JSON
// without white space and breakpoints; system text; then the turns, one segment per block: text, past reasoning, calls
// (name, newline, arguments byte for byte), results. A deferred tool comes after the first tool reference that names
// it. The canonical prompt does not include breakpoints, the form of content (string or list), IDs, encrypted
// reasoning, signatures, error marks of tool results, and text that a template inserts between messages. It includes
// tools that the server runs, although chat.AppendTools leaves them out. Two segments are equal if they have the same
// text, kind and role and both or neither start a turn; so a longer last message is a divergence, not an extension.
//
// # Results
//
// The table lists the offset in the canonical prompt at which two requests of one harness diverge if they differ in the
// user (home directory), the working directory or the day and, for Claude Code, also in the first message.
// The columns are for requests as sent, stripped (Stabilize without options), and with Canonical, Relocate and
// DeferredLast. The requests are recorded first requests in which the user, directory or day was replaced by another of
// equal length (TestFigures). Their prompts have 48,653 bytes (Claude Code 2.1.330), 37,290 (Codex 0.169), 30,541
// (OpenCode 1.18), 35,901 (OpenClaw) and 5,465 (pi). OpenClaw and pi do not mention the home directory.
//
//	                       tools first          system first
//	other                 sent stripped reloc.  sent stripped reloc.
//	Claude Code user       31045  34637  37847     47   3639   6849
//	Claude Code directory  31045  34687  37897     47   3689   6899
//	Claude Code day        31045  48577  48629     47  48577  48629
//	Codex       user       34594  34594  36768  17453  17453  19627
//	Codex       directory  36801  36801  36846  36801  36801  36846
//	Codex       day        36965  36965  37010  36965  36965  37010
//	OpenCode    user         473    473  30347  10110  10110  10146
//	OpenCode    directory  29557  29557  29534   8727   8727   8733
//	OpenCode    day        29666  29666  30526   8836   8836   9652
//	OpenClaw    directory  30881  30881  31998  21716  21716  22833
//	OpenClaw    day        32311  32311  35341  23146  23146  26176
//	pi          directory   5278   5278   5278   2330   2330   2330
//	pi          day         5349   5349   5349   2401   2401   2401
//
// Project files (AGENTS.md) are not moved, so OpenCode, OpenClaw and pi gain more between days and users than between
// directories. If a template writes the system text first, relocated text comes before the tools, which are then not
// shared; only a template that writes tools first gains fully.
package preamble
