// SPDX-License-Identifier: Apache-2.0

package parsers

import "strings"

// LookupModel returns the name of the grammar of a model in the default registry, and reports whether the model is
// known. The name is that of a family, or "tool+reasoning" if calls and reasoning belong to two families.
//
// The id may be a Hugging Face id, an Ollama name with tag, a GGUF file, a path, or any of these with "@revision".
// Case, the spelling of version numbers ("v3.1", "v3p1", "3_1") and the suffixes of quantizers are ignored. Where two
// models are named, such as in DeepSeek-R1-Distill-Llama-8B, the first one counts. Base, embedding, reranking, reward
// and guard models have no grammar.
//
// An id is a guess. A chat template decides which grammar a model was taught, and a fine-tune may use another one than
// its name suggests. Unknown ids are not guessed, and an id of more than 4096 bytes is unknown.
//
// Cost: one pass of the id per row of a table of about 110 rows. Safe for concurrent use.
func LookupModel(id string) (name string, ok bool) {
	name = familyOfModel(id)
	return name, name != ""
}

// familyOfModel is LookupModel with "" for unknown ids. The last part of a path that names a model takes precedence.
func familyOfModel(id string) string {
	if len(id) > 4096 {
		return ""
	}
	id = strings.ToLower(id)
	for end := len(id); end > 0; {
		i := strings.LastIndexAny(id[:end], `/\@`)
		if name, known := familyOfPart(id[i+1 : end]); known {
			return name
		}
		end = max(i, 0)
	}
	return ""
}

// familyOfPart looks up one part of a path. The rule that matches first in the part wins, among those the first one.
func familyOfPart(part string) (name string, known bool) {
	for _, w := range noGrammar {
		if from, _ := findModel(part, w, 0); from >= 0 {
			return "", true
		}
	}
	best := len(part)
	for _, r := range modelRules {
		from, to := findModel(part, r.model, 0)
		if from < 0 || from >= best {
			continue
		}
		if r.with != "" {
			if at, _ := findModel(part, r.with, to); at < 0 {
				continue
			}
		}
		best, name, known = from, r.name, true
	}
	return name, known
}

// noGrammar lists words that identify models that do not chat.
var noGrammar = [...]string{
	"embedding", "embed", "reranker", "rerank", "reward", "guard", "guardian", "base", "asr", "tts",
}

// modelRules maps models to families. See findModel for patterns; with must come after model. Rules that can match at
// the same position are in order, the special one first. A rule without a name specifies that the model is not one of
// those that a later word of its id may name.
var modelRules = [...]struct{ model, with, name string }{
	// Qwen. Model cards of Qwen3-Coder, Qwen3.5 to 3.8 and vLLM's and smg's tables: XML; older ones: JSON. The templates
	// of QwQ and of the Thinking models write <think> into the prompt; their cards name the deepseek_r1 reasoning parser.
	{"qwen3coder", "", "qwen3_coder"},
	{"qwen3.", "", "qwen35"},
	{"qwen3", "thinking", "qwen3_thinking"},
	{"qwen3", "", "qwen3"},
	{"qwen2.5", "", "qwen25"},
	{"qwq", "", "qwen25+deepseek_r1"},
	{"ornith", "", "qwen35"}, // Ollama's parser table

	// DeepSeek. smg's table and SGLang's documentation: V3.2-Exp still writes calls as V3.1. vLLM's documentation: R1-0528
	// writes them as V3; so do the templates of the R1 distillates.
	{"deepseek4.1", "", "deepseek_v41"},
	{"deepseek4", "", "deepseek_v4"},
	{"deepseek3.2", "exp", "deepseek_v3_1"},
	{"deepseek3.2", "", "deepseek_v3_2"},
	{"deepseek3.1", "", "deepseek_v3_1"},
	{"deepseek3", "", "deepseek_v3"},
	{"deepseekr1", "", "deepseek_r1"},
	{"cogito", "671b", "deepseek_v3"}, // Ollama's cogito parser; smaller models have the grammar of their base

	// GLM. vLLM's documentation, smg's table. The templates of 4.5 and 4.6 have a newline after the name.
	{"glm4.5", "", "glm45"},
	{"glm4.6", "", "glm45"},
	{"glm4.7", "", "glm47"},
	{"glm5*", "", "glm47"},

	// Kimi. The template of K2-Thinking leaves <think> to the model, the template of K2.5 writes it (Dynamo: kimi_k25).
	// Linear: the template. Others: smg's and vLLM's rule "kimi".
	{"kimik3*", "", "kimi_k3"},
	{"kimik2.", "", "kimi_k25"},
	{"kimik2", "", "kimi_k2"},
	{"kimilinear", "", "kimi_k2"},
	{"kimivl", "", "kimi"},
	{"kimidev", "", "kimi"},

	// Nemotron. 3 and later: model cards, smg's table. Nano v2: template, which writes <think> into the prompt. Llama
	// based ones: model cards (llama_nemotron_json), Dynamo's documentation; but 70B-Instruct is a plain Llama 3.1.
	{"nemotron3*", "", "nemotron_nano"},
	{"nemotron", "v2", "nemotron_deci+deepseek_r1"},
	{"nemotron70b", "", "llama3_json"},
	{"nemotronsuper", "", "nemotron_deci"},
	{"nemotronultra", "", "nemotron_deci"},
	{"llama3*", "nemotron70b", "llama3_json"},
	{"llama3*", "nemotron", "nemotron_deci"},
	{"llamanemotron", "", "nemotron_deci"},

	// Llama. vLLM's and Dynamo's documentation. The template of Llama 3.0 has no tools.
	{"llama4", "", "pythonic"},
	{"llama3.1", "", "llama3_json"},
	{"llama3.2", "", "llama3_json"},
	{"llama3.3", "", "llama3_json"},
	{"toolace", "", "pythonic"}, // vLLM's documentation

	// Families that vLLM, SGLang, smg and Ollama name after their models.
	{"step3", "", "step3"},
	{"lfm2*", "", "lfm2"},
	{"commandr7b", "", "cohere"},
	{"commanda", "", "cohere"},
	{"laguna", "", "laguna"},
	{"sarashina2.2", "", "sarashina"},

	// Mistral. Tokenizer versions: mistral-common's list of models and model cards. Version 11 puts a call id between name
	// and arguments, 13 does not. Magistral 2506 thinks in <think>, later ones in [THINK].
	{"mistralsmall3.2", "", "mistral_v11"},
	{"mistralsmall4*", "", "ministral"},
	{"mistrallarge3*", "", "ministral"},
	{"ministral3*", "", "ministral"},
	{"devstral2*", "", "ministral"},
	{"devstralsmall2", "", "ministral"},
	{"devstral", "2507", "ministral"},
	{"magistral", "2506", "mistral+qwen3"},
	{"magistral", "", "ministral"},
	{"mistral", "", "mistral"},
	{"mixtral", "", "mistral"},
	{"pixtral", "", "mistral"},
	{"ministral", "", "mistral"},
	{"devstral", "", "mistral"},

	// Granite. 3: vLLM's documentation; 4.0 and 4.1: vLLM's granite4 parser; 4.2: model card and template.
	{"granite4.2", "", "qwen3_coder"},
	{"granite4*", "", "hermes"},
	{"granite3*", "", "granite"},

	// One family each: vLLM's, Dynamo's, SGLang's and Ollama's tables.
	{"gptoss", "", "harmony"},
	{"gemma4", "", "gemma4"},
	{"functiongemma", "", "functiongemma"},
	{"minimaxm1", "", "minimax_m1"},
	{"minimaxm2*", "", "minimax_m2"},
	{"minimaxm3*", "", "minimax_m3"},
	{"museglimmer", "", "muse_glimmer"},
	{"olmo3*", "think", "olmo3+deepseek_r1"}, // <think> is in the prompt: Ollama's olmo3-think parser
	{"olmo3*", "", "olmo3"},
	{"phi4", "reasoning", "phi4+qwen3"}, // <think>…</think>: model card
	{"phi4", "", "phi4"},
	{"jamba2", "", ""},               // not looked up yet
	{"jamba", "reasoning", "hermes"}, // template of Jamba-Reasoning-3B
	{"jamba", "", "jamba"},
	{"hermes", "", "hermes"},
	{"deephermes", "", "hermes"},
	{"openhermes", "", ""}, // no tools, unlike its base model

	{"hy3", "", "hy3"},
	{"spark2.5", "", "spark25"},
	{"solaropen2", "", "solar_open2"},
	{"gigachat3.5", "", "gigachat35"},
	{"gigachat3*", "", "gigachat3"},
	{"telechat4", "", "telechat4"},
	{"functionary", "3.1", "functionary_v3_1"},
	{"rekaedge", "", "hermes"},

	// One family each, from the sources of its grammar in package family. Where a family is of the tuned or the thinking
	// models of a series, the other models have another template, or none.
	{"seedoss", "", "seed_oss"},
	{"hunyuana13b", "instruct", "hunyuan_a13b"},
	{"ernie4.5", "thinking", "ernie45"},
	{"longcatflashchat", "", "longcat"},
	{"xlam2", "", "xlam"},
	{"apertus", "instruct2509", "apertus"},
	{"interns1", "pro", ""}, // its template is not known here
	{"interns1", "", "internlm"},
	{"internlm2.5", "chat", "internlm"},
	{"internlm3", "instruct", "internlm"},
	{"granite20bfunctioncalling", "", "granite_20b_fc"},
	{"apriel1.5", "", "apriel"},
	{"apriel1.6", "", "apriel"},
	{"minicpm5", "", "minicpm5"},
	{"ling3*", "", "ling3"},
	{"iquestq1", "", "iquest_q1"},
	{"inkling", "", "inkling"},
	{"mimo2*", "", "mimo"},

	// Others that use the grammar of another family: model cards and templates.
	{"exaone4*", "", "hermes"},
	{"firefunction2", "", "phi4"},
	{"intellect3*", "", "qwen3_coder+deepseek_r1"},
	{"smollm3", "", "hermes"},
	{"step3.5", "", "step3p5+qwen3_thinking"}, // <think> is in the prompt: vLLM's step3p5 parser, which reads both
	{"step3.7", "", "step3p5+qwen3_thinking"},
	{"trinitymini", "", "hermes"},
}

// findModel returns the extent of the first match of pattern in s[from:], or -1. Both are lower case. Letters and
// digits match themselves, and separators between them do not count:
//
//	deepseek3  deepseek-v3, deepseekv3: a letter v before a number may be missing in the pattern
//	glm4.5     glm-4.5, glm-4_5, glm-4p5, glm-4-5, glm45
//	glm5       not glm-5.1, not glm-50, and not glm-5b, which is a size
//	glm5*      glm-5 and glm-5.1
//	qwen3.     qwen3.5, qwen35 and other minor versions, but not qwen3
//
// A match begins and ends where words or numbers do: phi4 is not in phi-40, nor hermes in openhermes.
func findModel(s, pattern string, from int) (begin, end int) {
	for i := from; i < len(s); i++ {
		if i > 0 && idKind(s[i]) == idKind(s[i-1]) {
			continue
		}
		if end := matchModel(s, i, pattern); end >= 0 {
			return i, end
		}
	}
	return -1, -1
}

// matchModel returns the end of a match of pattern that begins at s[j], or -1.
func matchModel(s string, j int, pattern string) int {
	for k := range len(pattern) {
		switch p := pattern[k]; {
		case p == '*':
			j = max(j, minorVersion(s, j))
		case p == '.' && k == len(pattern)-1:
			if j < len(s) && idKind(s[j]) == idDigit {
				j = endOfRun(s, j)
			} else if j = minorVersion(s, j); j < 0 {
				return -1
			}
		case p == '.':
			if j+1 < len(s) && strings.IndexByte("._p-", s[j]) >= 0 {
				j++
			}
		default:
			if k > 0 && (idKind(p) != idDigit || idKind(pattern[k-1]) == idLetter) {
				for j < len(s) && idKind(s[j]) == idSeparator {
					j++
				}
				if j < len(s) && s[j] == 'v' && idKind(p) == idDigit {
					j++
				}
			}
			if j >= len(s) || s[j] != p {
				return -1
			}
			j++
		}
	}
	last := pattern[len(pattern)-1]
	switch {
	case j == len(s):
	case idKind(last) == idLetter:
		if idKind(s[j]) == idLetter {
			return -1
		}
	case idKind(s[j]) == idDigit || isSize(s[j:]) || last != '*' && minorVersion(s, j) >= 0:
		return -1
	}
	return j
}

// minorVersion returns the end of the minor version at s[j], its point included, or -1. An underscore may separate a
// size too.
func minorVersion(s string, j int) int {
	if j+1 >= len(s) || strings.IndexByte("._p", s[j]) < 0 || idKind(s[j+1]) != idDigit {
		return -1
	}
	end := endOfRun(s, j+1)
	size := end
	if s[j] == '_' && end+1 < len(s) && s[end] == '.' && idKind(s[end+1]) == idDigit {
		size = endOfRun(s, end+1)
	}
	if isSize(s[size:]) {
		return -1
	}
	return end
}

// isSize reports whether what follows a number makes it a number of parameters or bits.
func isSize(s string) bool {
	if s == "" || idKind(s[0]) != idLetter {
		return false
	}
	switch s[:endOfRun(s, 0)] {
	case "b", "m", "bit", "bits", "bpw":
		return true
	}
	return false
}

// endOfRun returns the end of the characters of the same kind that begin at s[i].
func endOfRun(s string, i int) int {
	for k := idKind(s[i]); i < len(s) && idKind(s[i]) == k; i++ {
	}
	return i
}

// The kinds of characters of a model id.
const (
	idSeparator = iota
	idLetter
	idDigit
)

func idKind(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return idDigit
	case 'a' <= c && c <= 'z', c >= 0x80:
		return idLetter
	}
	return idSeparator
}
