// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

// runLines returns the lines of output and the error of a run.
func runLines(t *testing.T, in string, args ...string) ([]string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(args, strings.NewReader(in), &out)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), err
}

func TestRecords(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{
			"flags only", `{"id":1,"tokens":[0,1,2,3,4,5,6,7,8],"more":true}`,
			`{"id":1,"hashes":["9143094415614847814","9510318385840434533"],"local":["9143094415614847814","12124091508212882195"]}`,
		},
		{"only a tail", `{"id":"two","tokens":[0]}`, `{"id":"two","hashes":[],"local":[]}`},
		{"lora", `{"tokens":[0,1,2,3],"lora":"adapter-a"}`, `{"id":null,"hashes":["6665157333201000639"],"local":["6665157333201000639"]}`},
		{"salt", `{"tokens":[0,1,2,3],"salt":"tenant-a"}`, `{"id":null,"hashes":["17009624042690211646"],"local":["17009624042690211646"]}`},
		{
			"objects of each block", `{"id":1,"tokens":[0,1,2,3,4,5,6,7,8,9,10,11],"mm":[null,[42],["9",7]]}`,
			`{"id":1,"hashes":["9143094415614847814","6091675887886520276","14898108143921500865"],` +
				`"local":["9143094415614847814","15267005282704193396","4582779482327210310"]}`,
		},
		{
			"objects by position", `{"id":1,"tokens":[0,1,2,3,4,5,6,7],"objects":[{"hash":"42","at":6,"len":2}]}`,
			`{"id":1,"hashes":["9143094415614847814","6091675887886520276"],"local":["9143094415614847814","15267005282704193396"]}`,
		},
		{
			"vllm", `{"id":1,"scheme":"vllm_sha256_cbor","seed":0,"tokens":[0,1,2,3]}`,
			`{"id":1,"hashes":["10703402261835016479"],"digests":["8d4c7c828f1611f485f1ebfc2b19f0fe1c90d0a71d00cd90948a1fa5e8c9e91f"]}`,
		},
		{
			"vllm, offsets", `{"id":1,"scheme":"vllm_xxhash_cbor","seed":"0","block":2,"tokens":[0,1,2,3],"mm":[[["a",1]],[["a",-1]]]}`,
			"same as " + `{"id":1,"scheme":"vllm_xxhash_cbor","seed":"0","block":2,"tokens":[0,1,2,3],` +
				`"objects":[{"id":"a","at":1,"len":3}]}`,
		},
		{
			"vllm, no offsets", `{"id":1,"scheme":"vllm_xxhash_cbor","seed":0,"block":2,"tokens":[0,1,2,3],"mm":[["a"],["a","b"]]}`,
			"same as " + `{"id":1,"scheme":"vllm_xxhash_cbor","seed":0,"block":2,"variant":"bare","tokens":[0,1,2,3],` +
				`"objects":[{"id":"a","at":1,"len":2},{"id":"b","at":3,"len":1}]}`,
		},
		{
			"vllm, none hash", `{"id":1,"scheme":"vllm_xxhash_cbor","tokens":[0,1,2,3],"none_hash":"1ebe36576dcb573f26b99533a20aaeca"}`,
			`{"id":1,"hashes":["5527508028254784353"],"digests":["c20df5f86688b63f4cb5a744053f0b61"]}`,
		},
		{
			"sglang prints signed numbers", `{"id":1,"scheme":"sglang","block":1,"tokens":[0]}`,
			`{"id":1,"hashes":["-2360060374177730597"],"digests":["df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119"]}`,
		},
		{"llmd", `{"id":1,"scheme":"llmd","model":"m","tokens":[0,1,2,3]}`, `{"id":1,"hashes":["17285939621594237469"]}`},
		{
			"llmd, offsets do not count", `{"id":1,"scheme":"llmd","block":2,"tokens":[0,1,2,3],"mm":[[["a",1]],[["a",-1]]]}`,
			"same as " + `{"id":1,"scheme":"llmd","block":2,"tokens":[0,1,2,3],"mm":[["a"],["a"]]}`,
		},
		{"trtllm", `{"id":1,"scheme":"trtllm","lora":7,"salt":null,"tokens":[0,1,2,3]}`, `{"id":1,"hashes":["1393599221341711815"]}`},
		{
			"universal", `{"id":1,"variant":"universal","block":8,"tokens":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15],` +
				`"objects":[{"hash":51966,"at":8,"len":20}]}`,
			`{"id":1,"hashes":["12126819726423666500","10978924218451869791"],"local":["12126819726423666500","17992028842846631365"]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runLines(t, tt.in, "-scheme", "dynamo", "-block", "4")
			require.NoError(t, err)
			want := []string{tt.want}
			if in, ok := strings.CutPrefix(tt.want, "same as "); ok {
				want, err = runLines(t, in, "-scheme", "dynamo", "-block", "4")
				require.NoError(t, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLineage(t *testing.T) {
	got, err := runLines(t, `{"id":1,"tokens":[0,1,2,3]}`, "-scheme", "dynamo", "-block", "4", "-lineage")
	require.NoError(t, err)
	require.Equal(t, []string{`{"id":1,"hashes":["9143094415614847814"],"local":["9143094415614847814"],` +
		`"lineage":["001fb8b2fb71a52ad180000000000000"]}`}, got)
}

func TestBadRecords(t *testing.T) {
	good := `{"id":1,"tokens":[0,1,2,3]}`
	for _, tt := range []struct{ in, why string }{
		{`nonsense`, "is not JSON: invalid character 'o' in literal null (expecting 'u'), at byte 1"},
		{`{"id":2,"tokens":[1]} {}`, "is not JSON: invalid character '{' after top-level value, at byte 22"},
		{`[1]`, "is not a JSON object"},
		{`null`, "is not a JSON object"},
		{"{\"id\":2,\"tokens\":[],\"lora\":\"\xff\"}", "is not UTF-8"},
		{`{"id":2}`, "no tokens"},
		{`{"id":2,"TOKENS":[1]}`, "no tokens"},
		{`{"id":2,"tokens":null}`, "no tokens"},
		{`{"id":2,"tokens":"1"}`, `tokens is "1", want a list of token ids`},
		{`{"id":2,"tokens":[-1]}`, "tokens[0] is -1, want a token id, 0 to 4294967295"},
		{`{"id":2,"tokens":[3,4294967296]}`, "tokens[1] is 4294967296, want"},
		{`{"id":2,"tokens":[1.5]}`, "tokens[0] is 1.5, want"},
		{`{"id":2,"tokens":["7"]}`, `tokens[0] is "7", want`},
		{`{"id":2,"tokens":[1,null]}`, "tokens[1] is null, want"},
		{`{"id":2,"tokens":[[1,2]]}`, "tokens[0] is [1,2], want"},
		{`{"id":2,"tokens":[],"block":-1}`, "block size is -1"},
		{`{"id":2,"tokens":[],"block":9223372036854775807,"variant":"eagle"}`, "block "},
		{`{"id":2,"tokens":[],"block":"4"}`, `block is "4", want a whole number`},
		{`{"id":2,"tokens":[],"block":99999999999999999999}`, "block is 99999999999999999999, want a whole number"},
		{`{"id":2,"tokens":[],"scheme":7}`, "scheme is 7, want a string"},
		{`{"id":2,"tokens":[],"scheme":"vllm_sha256"}`, `scheme: "vllm_sha256": vLLM hashes Python's pickle`},
		{`{"id":2,"tokens":[],"scheme":"sglang","lora":"a"}`, "lora: does not enter the hashes of this scheme (scheme sglang)"},
		{`{"id":2,"tokens":[],"scheme":"vllm_xxhash_cbor"}`, "seed: is missing"},
		{`{"id":2,"tokens":[],"scheme":"llmd","variant":"bare"}`, "variant: does not enter"},
		{`{"id":2,"tokens":[],"variant":"pairs"}`, `variant: is unknown: "pairs"; known are ["eagle" "universal"]`},
		{`{"id":2,"tokens":[],"variant":true}`, `variant is true, want a string`},
		{`{"id":2,"tokens":[],"salt":{}}`, "salt is {}, want a string or a number"},
		{`{"id":2,"tokens":[],"seed":[]}`, "seed is [], want a string or a number"},
		{`{"id":2,"tokens":[],"model":"` + strings.Repeat("x", 50) + `","lora":false}`, "lora is false, want"},
		{`{"id":2,"tokens":[],"scheme":"vllm_sha256_cbor","none_hash":"x"}`, "none_hash: is not hex"},
		{`{"id":2,"tokens":[],"scheme":"vllm_sha256_cbor","none_hash":"00"}`, "none_hash: has 1 bytes, want 32"},
		{`{"id":2,"tokens":[1],"mm":[[1],[2]]}`, "mm has 2 blocks"},
		{`{"id":2,"tokens":[1],"mm":5}`, "mm is 5, want a list with a list for each block"},
		{`{"id":2,"tokens":[1],"mm":[5]}`, "mm[0] is 5, want a list of hashes or null"},
		{`{"id":2,"tokens":[1],"mm":[["a"]]}`, "not a 64-bit decimal"},
		{`{"id":2,"tokens":[1],"mm":[[""]]}`, "neither hash nor id"},
		{`{"id":2,"tokens":[1],"mm":[[1,true]]}`, "mm[0][1] is true, want a hash"},
		{`{"id":2,"tokens":[1],"mm":[[["a"]]]}`, `mm[0][0] is ["a"], want`},
		{`{"id":2,"tokens":[1],"mm":[[["a",9223372036854775807]]]}`, "mm[0][0][1] is 9223372036854775807, want an offset"},
		{`{"id":2,"tokens":[1],"mm":[[["a",null]]]}`, "mm[0][0][1] is null, want an offset"},
		{`{"id":2,"tokens":[1],"mm":[[["1",4]]]}`, "outside a block"},
		{`{"id":2,"tokens":[1,2,3,4,5],"mm":[null,[["1",-1]]]}`, "not in the previous block"},
		{`{"id":2,"tokens":[1],"mm":[[1]],"objects":[]}`, "mutually exclusive"},
		{`{"id":2,"tokens":[1],"mm":[[1]],"variant":"universal"}`, "positions"},
		{`{"id":2,"tokens":[1],"mm":[[1]],"scheme":"sglang"}`, "does not hash objects"},
		{`{"id":2,"tokens":[1],"mm":[["1",["2",0]]],"scheme":"vllm_sha256_cbor"}`, "some do not"},
		{`{"id":2,"tokens":[1],"objects":{}}`, "objects is {}, want a list of objects"},
		{`{"id":2,"tokens":[1],"objects":[{"hash":1,"at":3,"len":2},{"hash":1,"at":4,"len":2}]}`, "objects[1]"},
		{`{"id":2,"tokens":[1],"objects":[{"hash":1,"at":3}]}`, "objects[0]"},
		{`{"id":2,"tokens":[1],"objects":[{"hash":1,"at":"3","len":1}]}`, `objects[0].at is "3", want a whole number`},
		{`{"id":2,"tokens":[1],"objects":[{"hash":"x","at":3,"len":1}]}`, "objects[0]"},
	} {
		got, err := runLines(t, good+"\n\n"+tt.in+"\n"+good, "-scheme", "dynamo", "-block", "4")
		require.EqualError(t, err, "1 of 3 records have errors, the first is line 3", tt.in)
		require.Len(t, got, 3, tt.in)
		require.Equal(t, got[0], got[2])
		var ans map[string]any
		require.NoError(t, json.Unmarshal([]byte(got[1]), &ans), tt.in)
		require.Contains(t, ans["error"], "line 3: ", tt.in)
		require.Contains(t, ans["error"], tt.why, tt.in)
		require.Len(t, ans, 2, tt.in)
		if strings.HasPrefix(tt.in, `{"id":2`) && !strings.Contains(tt.why, "is not") {
			require.Equal(t, 2.0, ans["id"], tt.in)
		}
	}
}

// Lines may end in CRLF, be empty or very long, and the last line may be unterminated.
func TestLines(t *testing.T) {
	rec := `{"id":1,"tokens":[0,1,2,3],"salt":null}`
	want := `{"id":1,"hashes":["9143094415614847814"],"local":["9143094415614847814"]}`
	got, err := runLines(t, rec+"\r\n\r\n \n"+rec+"\r\n"+rec, "-scheme", "dynamo", "-block", "4")
	require.NoError(t, err)
	require.Equal(t, []string{want, want, want}, got)
	got, err = runLines(t, "", "-scheme", "dynamo", "-block", "4")
	require.NoError(t, err)
	require.Equal(t, []string{""}, got)
	long := `{"id":1,"tokens":[` + strings.Repeat("4294967295,", 1<<17) + `7]}`
	got, err = runLines(t, long, "-scheme", "dynamo", "-block", "131072")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Contains(t, got[0], `"hashes":["`)

	name := filepath.Join(t.TempDir(), "two.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(rec+"\n{}\n"), 0o600))
	got, err = runLines(t, "", "-scheme", "dynamo", "-block", "4", name, name)
	require.EqualError(t, err, "2 of 4 records have errors, the first is line 2 of "+name)
	require.Len(t, got, 4)
	require.Contains(t, got[3], "line 2 of ")
}

func TestFatal(t *testing.T) {
	for _, tt := range []struct {
		why  string
		args []string
	}{
		{`-scheme "md5": there is no such scheme`, []string{"-scheme", "md5"}},
		{"-lora: does not enter", []string{"-scheme", "sglang", "-lora", "a"}},
		{"-none-hash: is not hex", []string{"-scheme", "vllm_sha256_cbor", "-none-hash", "x"}},
		{"-none-hash: has 1 bytes", []string{"-scheme", "vllm_sha256_cbor", "-none-hash", "00"}},
	} {
		_, err := runLines(t, "", tt.args...)
		require.ErrorContains(t, err, tt.why)
	}
	for _, args := range [][]string{{"-scheme", "md5"}, {"-scheme", "sglang", "-lora", "a"}, {"no-such-file"}, {"-block", "x"}} {
		var out bytes.Buffer
		require.Error(t, run(args, strings.NewReader(""), &out), args)
		require.Empty(t, out.String())
	}
	got, err := runLines(t, `{"id":1,"tokens":[],"seed":1}`+"\n"+`{"id":2,"tokens":[]}`, "-scheme", "vllm_xxhash_cbor", "-block", "4")
	require.ErrorContains(t, err, "1 of 2 records", "the seed may come with the record")
	require.Contains(t, got[1], "seed: is missing")
	got, err = runLines(t, `{"id":1,"tokens":[]}`)
	require.Error(t, err)
	require.Contains(t, got[0], "no scheme")
}

type dict = map[string]any

// TestGolden compares the command with hashes that independent programs computed.
func TestGolden(t *testing.T) {
	read := func(name string) (v any) {
		dir := os.Getenv("WEFT_SHARED")
		if dir == "" {
			dir = filepath.Join("..", "..", "..", "shared")
		}
		raw, err := os.ReadFile(filepath.Join(dir, "kv", "golden", name))
		if err != nil {
			t.Skip("no golden hashes: set WEFT_SHARED")
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&v))
		return v
	}
	type pair struct {
		rec  dict
		want dict // fields of the result
	}
	var all []pair
	add := func(rec, want dict) { all = append(all, pair{rec, want}) }

	for _, v := range read("dynamo_hashes.json").(dict)["dynamo"].([]any) {
		c, in := v.(dict), v.(dict)["input"].(dict)
		rec := dict{"scheme": "dynamo", "tokens": in["toks"], "block": in["bs"]}
		if in["eagle"] != nil {
			rec["variant"] = "eagle"
		}
		for _, k := range []string{"lora", "salt", "mm"} {
			if in[k] != nil {
				rec[k] = in[k]
			}
		}
		if runs, ok := in["mm_runs"].([]any); ok {
			var list []dict
			for _, r := range runs {
				list = append(list, dict{"hash": r.(dict)["mm_hash"], "at": r.(dict)["offset"], "len": r.(dict)["length"]})
			}
			rec["objects"], rec["variant"] = list, "universal"
		}
		add(rec, dict{"hashes": c["sequence_hashes"], "local": c["local_block_hashes"], "lineage": c["plh_hex"]})
	}
	vllm := append(read("vllm_hashes.json").(dict)["vllm"].([]any), read("vllm_xxhash_cbor.json").([]any)...)
	for _, v := range vllm {
		c := v.(dict)
		if c["tokens"] == nil {
			require.NotEmpty(t, c["note"])
			continue
		}
		rec := dict{"scheme": fmt.Sprint("vllm_", c["hash_fn"]), "seed": c["PYTHONHASHSEED"], "tokens": c["tokens"], "block": c["block_size"], "variant": "pairs"}
		if s, ok := c["tokens"].(string); ok {
			var to int
			_, err := fmt.Sscanf(s, "0..%d", &to)
			require.NoError(t, err)
			rec["tokens"] = upTo(0, to)
		}
		keys(c["extra_keys"], rec)
		if c["hash_fn"] == "sha256" {
			add(rec, dict{"error": nil})
			continue
		}
		add(rec, dict{"hashes": c["int64_events"], "digests": c["block_hashes_hex"]})
	}
	up := read("vllm_upstream_checks.json").(dict)
	var tokens []int
	for i := range 300 {
		tokens = append(tokens, (i*7919+13)%152064)
	}
	chain := up["chain_default_seed"].(dict)
	rec := dict{"scheme": "vllm_sha256_cbor", "tokens": tokens, "block": chain["block_size"]}
	add(rec, dict{"hashes": chain["int64"], "digests": chain["hashes"]})
	for _, v := range up["seed0_tokens_1000_1127_bs128"].([]any) {
		rec := dict{"scheme": "vllm_sha256_cbor", "seed": "0", "tokens": upTo(1000, 1127), "block": 128, "variant": "pairs"}
		keys([]any{v.(dict)["extra_keys"]}, rec)
		add(rec, dict{"digests": []any{v.(dict)["hash"]}})
	}
	others := read("other_hashes.json").(dict)
	for _, v := range others["sglang"].([]any) {
		c := v.(dict)
		rec := dict{"scheme": "sglang", "tokens": c["tokens"], "block": c["page_size"]}
		add(rec, dict{"hashes": c["event_int64"], "digests": c["sha256_hex"]})
	}
	for _, v := range others["trtllm"].([]any) {
		c := v.(dict)
		if c["cache_salt_id"] != nil {
			continue // the ID of an unknown salt
		}
		rec := dict{"scheme": "trtllm", "tokens": c["tokens"], "block": c["tokens_per_block"], "lora": c["lora_task_id"]}
		add(rec, dict{"hashes": c["hashes"]})
	}
	for _, v := range others["llmd"].([]any) {
		c := v.(dict)
		rec := dict{"scheme": "llmd", "tokens": c["tokens"], "block": c["block_size"], "model": c["model"], "seed": c["hash_seed"]}
		add(rec, dict{"hashes": c["request_keys"]})
	}

	var in bytes.Buffer
	for i, p := range all {
		p.rec["id"] = i
		require.NoError(t, json.NewEncoder(&in).Encode(p.rec))
	}
	got, err := runLines(t, in.String(), "-lineage")
	require.ErrorContains(t, err, "10 of ")
	require.Len(t, got, len(all))
	for i, p := range all {
		var ans dict
		require.NoError(t, json.Unmarshal([]byte(got[i]), &ans))
		for k, want := range p.want {
			if want == nil {
				require.Contains(t, ans[k], "pickle")
				continue
			}
			require.Equal(t, want, ans[k], "%s of %v", k, p.rec)
		}
		_, failed := ans["error"]
		require.Equal(t, len(p.want) == 1 && p.want["hashes"] == nil && p.want["digests"] == nil, failed, got[i])
	}
}

func upTo(from, to int) (list []int) {
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}

// keys converts vLLM's extra keys to the fields of a record that produce them.
func keys(blocks any, rec dict) {
	list, _ := blocks.([]any)
	var mm [][]any
	for _, b := range list {
		var objects []any
		keys, _ := b.([]any)
		for _, k := range keys {
			name, ok := k.(string)
			switch {
			case !ok:
				objects = append(objects, k)
			case strings.HasPrefix(name, "adapter"):
				rec["lora"] = name
			default:
				rec["salt"] = name
			}
		}
		mm = append(mm, objects)
	}
	if mm != nil {
		rec["mm"] = mm
	}
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "blockhash", func(args []string, stdout *bytes.Buffer) error { return run(args, strings.NewReader(""), stdout) })
}
