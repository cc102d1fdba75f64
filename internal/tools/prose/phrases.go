// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// A group is a set of phrases that CONTRIBUTING.md advises against, with what to write instead.
type group struct {
	name    string
	match   *regexp.Regexp
	except  *regexp.Regexp // matches around a hit that make it a normal use; nil for none
	instead string
}

// groups are the phrases, in the order of the guide. Text in quotation marks or back quotes is removed before they are
// counted, so that the names of fields and flags do not count.
var groups = []group{
	{"says", re(`says?|said|saying|(?:is|are|be|was|been) told|tells|hears?|heard`),
		re(`RFC \d+ (?:says?|said)|(?:RFC|spec|specification|standard|documentation|document|paper|README|guide|doc|manual) says?|, say\b|\(say\b|\bsay,|needless to say`), "specifies, reports, contains, returns; receives"},
	{"stands", re(`stands?|stood|standing|lies`), nil, "is, is at, appears; represents"},
	{"behind", re(`behind|in front of`),
		re(`behind (?:a|an|the|its|one|this|that|such|several)? ?(?:\w+ )?(?:proxy|proxies|gateway|load balancer|router|firewall|flag|build tag|lock|mutex|interface)|engines? behind|in front of (?:a|an|the|its|several|two|real|other)? ?(?:\w+ )?(?:engines?|servers?|workers?|proxy|gateway|vLLM|SGLang)`), "after, before"},
	{"is how", re(`(?:is|are|was|were) (?:how|what|why)`), re(`what is what`), "a noun: number, result, reason"},
	{"that of", re(`that of|those of`), nil, "repeat the noun, or the possessive"},
	{"is none", re(`is none|are none|was none|(?:is|are|was|were) no [a-z]+`),
		re(`there (?:is|are|was|were) no [a-z]+|(?:is|are|was|were) no (?:longer|more|less|fewer|larger|greater|smaller|later|earlier|better|worse|other|such)`), "is nil, is absent; is not"},
	{"who", re(`who|whoever|nobody|somebody|everybody|anybody|he|his|him`), nil, "the caller, the client, no worker, they"},
	{"answer", re(`answer|answers|answered|answering`), nil, "response; return"},
	{"goes on", re(`(?:goes|go|went|going) (?:on|before|with|out|in)`), nil, "continues; takes precedence"},
	{"becomes of", re(`becomes? of|became of|fates?`), nil, "outcome, decision"},
	{"taken for", re(`(?:taken?|takes|took|mistakes?) (?:\w+ ){0,2}for|counts? as|is good|as good as`),
		re(`(?:taken?|takes|took) (?:a |the |as )?(?:\w+ )?(?:time|longer|long|seconds?|locks?|ownership|care|responsibility) for`), "is treated as"},
	{"place", re(`places?|stretch(?:es)?|life|lives`),
		re(`in[- ]place|(?:take|takes|took|taking|taken) place|in (?:its|their|the first|any) place|decimal places?|places? (?:a |an |the |each |every )?(?:requests?|prompts?|work)|router places|place holders?`), "position, range, lifetime"},
	{"beside", re(`beside|anew|pass(?:es|ed)? over|lets? go of`), nil, "next to, again, skips, releases"},
	{"folder", re(`folders?|pictures?|films?|members?`), nil, "directory, image, video, field"},
	{"shall", re(`good until|(?:is|are) to be|shall|but for|wish(?:es|ed)?|trails?|ingests?|ingested`), nil, "valid until, must, will, except"},
}

func re(expr string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + expr + `)\b`) }
