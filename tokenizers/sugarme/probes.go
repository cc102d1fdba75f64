// SPDX-License-Identifier: Apache-2.0

package sugarme

import "strings"

// probes returns the texts that are compared on load. They hold what the engine is known to get wrong: white
// space in runs and outside ASCII, repeated characters, letters outside ASCII, combining marks, joined emoji, and
// the file's added tokens alone, side by side and between words.
func probes(added []string) []string {
	list := []string{
		"a", " ", "Hello, world!", "hello world", "  leading", "trailing  ", "two  spaces   three",
		"\n", "\n\n\n", "line\nline\r\nline\r\n\r\n", "\ttab\t\ttab", "a\u00a0b\u3000c\u2028d\u0085e\ufefff\u200bg",
		"func main() {\n\tfmt.Println(\"hi\")\n\n\t\treturn\n}\n", "def f(x):\n    if x:\n        return x  # 1\n",
		`{"name": "bash", "arguments": {"cmd": "ls -la /tmp && echo \"done\""}}`,
		"// don't, it's I'LL we've 'tis", "0", "1234567890", "3.14159e-10", "0000000000000000", "////////", "========", "\"\"\"\"\"\"",
		"........", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ABCdefGHI", "snake_case camelCase kebab-case",
		"Grüße naïve café", "cafe\u0301 e\u0323\u0301", "ßİſKΣς", "日本語の文章。", "中文字符，标点", "한국어", "Привет мир", "مرحبا بالعالم", "नमस्ते",
		"👩‍👩‍👧 🚀🇩🇪", "\U0001F9FF\U00010940\u0378", "x\x00y\x01z\x7f", "<|im_end|>", "<s></s>", "[UNK]", "http://example.com/a?b=c&d=%20#e",
	}
	list = append(list, strings.Join(list, " "), strings.Repeat("the quick brown fox ", 50))
	seen := 0
	for i, a := range added {
		if a == "" || len(a) > 256 {
			continue
		}
		if seen++; seen > 64 {
			break
		}
		list = append(list, a, a+a, "x"+a+"y", " "+a+" ", "hello "+a+"\n"+a+" hello", strings.ToUpper(a), a[:len(a)-1])
		if i > 0 {
			list = append(list, a+added[0], added[0]+" word "+a+" word "+added[0])
		}
	}
	for i, s := range list {
		list[i] = strings.ToValidUTF8(s, "")
	}
	return list
}
