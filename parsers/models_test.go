// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
)

// modelIDs holds ids as people write them; without a name, a model must be unknown.
var modelIDs = []struct{ id, name string }{
	// Qwen
	{"Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_coder"},
	{"Qwen/Qwen3-Coder-Next-FP8", "qwen3_coder"},
	{"qwen3-coder:30b", "qwen3_coder"},
	{"qwen3-coder:30b-a3b-q4_K_M", "qwen3_coder"},
	{"qwen.qwen3-coder-30b-a3b-v1:0", "qwen3_coder"},
	{"/models/Qwen3-Coder/", "qwen3_coder"},
	{"unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3_coder"},
	{"Qwen/Qwen3.5-397B-A17B", "qwen35"},
	{"qwen3.5:0.8b", "qwen35"},
	{"Qwen/Qwen3.6-35B-A3B-FP8", "qwen35"},
	{"nvidia/Qwen3.8-27B-NVFP4", "qwen35"},
	{"accounts/fireworks/models/qwen3p6-35b-a3b", "qwen35"},
	{"qwen35-27b", "qwen35"},
	{"qwen3.5_27b", "qwen35"},
	{"ornith:latest", "qwen35"},
	{"Qwen/Qwen3-8B", "qwen3"},
	{"Qwen/Qwen3-0.6B", "qwen3"},
	{"qwen3:0.6b", "qwen3"},
	{"qwen3_0.6b", "qwen3"},
	{"qwen3_8b_instruct", "qwen3"},
	{"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3"},
	{"Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3"},
	{"Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen3"},
	{"hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "qwen3"},
	{"@cf/qwen/qwen3-30b-a3b-fp8", "qwen3"},
	{"/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd6066d109eabc6255188de91218", "qwen3"},
	{`C:\models\Qwen3-8B-Q4_K_M.gguf`, "qwen3"},
	{"Qwen3-8B-DeepSeek-v3.2-Speciale-Distill-GGUF", "qwen3"},
	{"Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3_thinking"},
	{"qwen3:30b-a3b-thinking-2507-q8_0", "qwen3_thinking"},
	{"Qwen/Qwen3-VL-8B-Thinking", "qwen3_thinking"},
	{"Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen25"},
	{"Qwen/Qwen2.5-Coder-32B-Instruct", "qwen25"},
	{"qwen2.5vl:7b", "qwen25"},
	{"Qwen/QwQ-32B", "qwen25+deepseek_r1"},

	// DeepSeek
	{"deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v3_1"},
	{"deepseek-v3.1:671b", "deepseek_v3_1"},
	{"deepseek-v3-1", "deepseek_v3_1"},
	{"accounts/fireworks/models/deepseek-v3p1", "deepseek_v3_1"},
	{"deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v3_1"},
	{"deepseek-ai/DeepSeek-V3.2", "deepseek_v3_2"},
	{"deepseek-ai/DeepSeek-V3", "deepseek_v3"},
	{"deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"},
	{"deepseek_v3", "deepseek_v3"},
	{"deepseek-ai/DeepSeek-V4-Flash-0731", "deepseek_v4"},
	{"deepseek-ai/DeepSeek-V4.1-Flash", "deepseek_v41"},
	{"deepseek_v41_local", "deepseek_v41"},
	{"deepseek-ai/DeepSeek-R1-0528", "deepseek_r1"},
	{"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek_r1"},
	{"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek_r1"},
	{"deepseek-r1:8b", "deepseek_r1"},
	{"deepcogito/cogito-v2-preview-deepseek-671B-MoE", "deepseek_v3"},

	// GLM
	{"zai-org/GLM-4.6-FP8", "glm45"},
	{"zai-org/GLM-4.5-Air@main", "glm45"},
	{"zai-org/GLM-4.5V", "glm45"},
	{"glm-4p5", "glm45"},
	{"zai-org/GLM-4.7-Flash", "glm47"},
	{"zai-org/GLM-5", "glm47"},
	{"zai-org/GLM-5.2-FP8", "glm47"},
	{"glm-5:cloud", "glm47"},

	// Kimi
	{"moonshotai/Kimi-K2-Instruct-0905", "kimi_k2"},
	{"moonshotai/Kimi-K2-Thinking", "kimi_k2"},
	{"kimi-k2:1t-cloud", "kimi_k2"},
	{"moonshotai/Kimi-K2.5", "kimi_k25"},
	{"moonshotai/Kimi-K2.6@refs/pr/12", "kimi_k25"},
	{"accounts/fireworks/models/kimi-k2p5", "kimi_k25"},
	{"moonshotai/Kimi-K3", "kimi_k3"},
	{"Kimi_K3", "kimi_k3"},
	{"moonshotai/Kimi-Linear-48B-A3B-Instruct", "kimi_k2"},
	{"moonshotai/Kimi-VL-A3B-Thinking-2506", "kimi"},

	// Nemotron and Llama
	{"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_nano"},
	{"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", "nemotron_nano"},
	{"nemotron-3-nano:30b", "nemotron_nano"},
	{"nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nemotron_deci+deepseek_r1"},
	{"nvidia/Llama-3_3-Nemotron-Super-49B-v1", "nemotron_deci"},
	{"nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-FP8", "nemotron_deci"},
	{"nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nemotron_deci"},
	{"nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "llama3_json"},
	{"nemotron:70b", "llama3_json"},
	{"meta-llama/Llama-3.1-8B-Instruct", "llama3_json"},
	{"meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "llama3_json"},
	{"llama3.2:3b", "llama3_json"},
	{"us.meta.llama3-3-70b-instruct-v1:0", "llama3_json"},
	{"accounts/fireworks/models/llama-v3p1-8b-instruct", "llama3_json"},
	{"lmstudio-community/Llama-3.3-70B-Instruct-GGUF", "llama3_json"},
	{"meta-llama/Llama-4-Scout-17B-16E-Instruct", "pythonic"},
	{"Team-ACE/ToolACE-8B", "pythonic"},
	{"NousResearch/Hermes-3-Llama-3.1-8B", "hermes"},
	{"NousResearch/Hermes-4-405B-FP8", "hermes"},
	{"NousResearch/DeepHermes-3-Mistral-24B-Preview", "hermes"},

	// Mistral
	{"mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral_v11"},
	{"mistral-small3.2:24b", "mistral_v11"},
	{"mistralai/Magistral-Small-2509", "ministral"},
	{"mistralai/Magistral-Small-2506", "mistral+qwen3"},
	{"mistralai/Ministral-3-8B-Reasoning-2512", "ministral"},
	{"ministral-3:14b", "ministral"},
	{"mistralai/Mistral-Small-4-119B-2603", "ministral"},
	{"mistralai/Mistral-Large-3-675B-Instruct-2512", "ministral"},
	{"mistralai/Devstral-Small-2-24B-Instruct-2512", "ministral"},
	{"mistralai/Devstral-2-123B-Instruct-2512", "ministral"},
	{"mistralai/Devstral-Small-2507", "ministral"},
	{"mistralai/Devstral-Small-2505", "mistral"},
	{"mistralai/Ministral-8B-Instruct-2410", "mistral"},
	{"mistralai/Mistral-7B-Instruct-v0.3", "mistral"},
	{"mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral"},
	{"mistralai/Mixtral-8x22B-Instruct-v0.1", "mistral"},

	// The rest
	{"openai/gpt-oss-120b", "harmony"},
	{"gpt-oss:20b", "harmony"},
	{"openai/gpt-oss-safeguard-20b", "harmony"},
	{"google/gemma-4-31B-it", "gemma4"},
	{"gemma4:e4b-it-q8_0", "gemma4"},
	{"google/functiongemma-270m-it", "functiongemma"},
	{"MiniMaxAI/MiniMax-M2", "minimax_m2"},
	{"mlx-community/MiniMax-M2.7-4bit", "minimax_m2"},
	{"MiniMaxAI/MiniMax-M3", "minimax_m3"},
	{"Muse-Glimmer-30B", "muse_glimmer"},
	{"ai21labs/AI21-Jamba-Large-1.7", "jamba"},
	{"ai21labs/AI21-Jamba-Reasoning-3B", "hermes"},
	{"microsoft/Phi-4-mini-instruct", "phi4"},
	{"phi4-mini:3.8b", "phi4"},
	{"microsoft/Phi-4-mini-reasoning", "phi4+qwen3"},
	{"ibm-granite/granite-3.3-8b-instruct", "granite"},
	{"granite3-dense:2b", "granite"},
	{"ibm-granite/granite-4.0-h-small", "hermes"},
	{"ibm-granite/granite-4.2-8b-fp8", "qwen3_coder"},
	{"allenai/Olmo-3-7B-Think", "olmo3+deepseek_r1"},
	{"allenai/Olmo-3.1-32B-Instruct", "olmo3"},
	{"LGAI-EXAONE/EXAONE-4.0-32B", "hermes"},
	{"cyankiwi/INTELLECT-3-AWQ-8bit", "qwen3_coder+deepseek_r1"},
	{"XiaomiMiMo/MiMo-V2-Flash", "mimo"},
	{"XiaomiMiMo/MiMo-V2.5-Pro", "mimo"},
	{"stepfun-ai/Step-3.5-Flash", "step3p5+qwen3_thinking"},
	{"stepfun-ai/Step-3.7-Flash", "step3p5+qwen3_thinking"},
	{"ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss"},
	{"tencent/Hunyuan-A13B-Instruct", "hunyuan_a13b"},
	{"baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45"},
	{"meituan-longcat/LongCat-Flash-Chat", "longcat"},
	{"Salesforce/Llama-xLAM-2-8b-fc-r", "xlam"},
	{"Salesforce/xLAM-2-32b-fc-r", "xlam"},
	{"swiss-ai/Apertus-70B-Instruct-2509", "apertus"},
	{"internlm/Intern-S1", "internlm"},
	{"internlm/Intern-S1-mini", "internlm"},
	{"internlm/internlm2_5-7b-chat", "internlm"},
	{"internlm/internlm3-8b-instruct", "internlm"},
	{"ibm-granite/granite-20b-functioncalling", "granite_20b_fc"},
	{"ServiceNow-AI/Apriel-1.6-15b-Thinker", "apriel"},
	{"ServiceNow-AI/Apriel-1.5-15b-Thinker", "apriel"},
	{"openbmb/MiniCPM5", "minicpm5"},
	{"inclusionAI/Ling-3.0-flash", "ling3"},
	{"IQuest-Q1", "iquest_q1"},
	{"thinkingmachines/Inkling", "inkling"},
	{"fireworks-ai/llama-3-firefunction-v2", "phi4"},
	{"HuggingFaceTB/SmolLM3-3B", "hermes"},
	{"arcee-ai/Trinity-Mini", "hermes"},

	// Names that look like known ones
	{"glm-4-9b-chat", ""},
	{"glm-45b", ""},
	{"glm-50", ""},
	{"phi-40", ""},
	{"phi-4b", ""},
	{"phi-4bit", ""},
	{"microsoft/Phi-3.5-mini-instruct", ""},
	{"google/gemma-3-4b-it", ""},
	{"gemma-4b", ""},
	{"Qwen/Qwen2-7B-Instruct", ""},
	{"qwen:32b", ""},
	{"teknium/OpenHermes-2.5-Mistral-7B", ""},
	{"stepfun-ai/step3", "step3"},
	{"MiniMaxAI/MiniMax-M1-80k", "minimax_m1"},
	{"tencent/Hy3", "hy3"},
	{"iflytek/Spark2.5", "spark25"},
	{"upstage/Solar-Open2", "solar_open2"},
	{"upstage/Solar-Open-100B", ""},
	{"ai-sage/GigaChat3.5", "gigachat35"},
	{"ai-sage/GigaChat3.1-10B-A1.8B", "gigachat3"},
	{"meetkai/functionary-medium-v3.1", "functionary_v3_1"},
	{"meetkai/functionary-medium-v3.2", ""},
	{"RekaAI/reka-edge-2603", "hermes"},
	{"meta-llama/Meta-Llama-3-8B-Instruct", ""},
	{"meta-llama/Llama-Guard-4-12B", ""},
	{"Salesforce/xLAM-7b-fc-r", ""},
	{"tencent/Hunyuan-A13B-Pretrain", ""},
	{"baidu/ERNIE-4.5-21B-A3B-PT", ""},
	{"swiss-ai/Apertus-8B-2509", ""},
	{"internlm/Intern-S1-Pro", ""},
	{"internlm/internlm2_5-7b", ""},
	{"ServiceNow-AI/Apriel-Nemotron-15b-Thinker", ""},
	{"inclusionAI/Ling-lite-1.5", ""},
	{"openbmb/MiniCPM4-8B", ""},
	{"XiaomiMiMo/MiMo-7B-RL", ""},
	{"ByteDance-Seed/Seed-OSS-36B-Base", ""},
	{"deepcogito/cogito-v1-preview-llama-8B", ""},
	{"deepseek-chat", ""},
	{"ibm-granite/granite-3b-code-instruct-128k", ""},
	{"ai21labs/AI21-Jamba2-3B", ""},
	{"mistralai/Voxtral-Mini-3B-2507", ""},

	// Models without a grammar, or with one that is not built
	{"Qwen/Qwen3-Embedding-8B", ""},
	{"Qwen/Qwen3-Reranker-4B", ""},
	{"Qwen/Qwen3Guard-Gen-8B", ""},
	{"Qwen/Qwen3-8B-Base", ""},
	{"zai-org/GLM-4.5-Base", ""},
	{"LiquidAI/LFM2.5-8B-A1B", "lfm2"},
	{"CohereLabs/command-a-reasoning-08-2025", "cohere"},
	{"CohereLabs/c4ai-command-r7b-12-2024", "cohere"},
	{"poolside/Laguna-XS", "laguna"},
	{"sbintuitions/sarashina2.2-3b-instruct-v0.1", "sarashina"},
	{"gpt-4o", ""},
	{"claude-sonnet-4-5", ""},
	{"", ""},
	{"/", ""},
	{"@main", ""},
	{"...", ""},
}

func TestLookupModel(t *testing.T) {
	for _, tc := range modelIDs {
		name, ok := parsers.LookupModel(tc.id)
		if diff := cmp.Diff(tc.name, name); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.id, diff)
		}
		require.Equal(t, tc.name != "", ok, tc.id)
	}
	_, ok := parsers.LookupModel(strings.Repeat("/", 4090) + "qwen3-8b")
	require.False(t, ok, "too long")
}

// Case and what quantizers and stores add around an id do not matter.
func TestLookupModelSpelling(t *testing.T) {
	for _, tc := range modelIDs {
		if tc.name == "" || strings.ContainsAny(tc.id, `:@\`) || strings.HasSuffix(tc.id, "/") {
			continue
		}
		for _, id := range []string{
			strings.ToUpper(tc.id), strings.ToLower(tc.id), tc.id + "-GGUF", tc.id + "-GPTQ-Int4", tc.id + "_bnb_4bit",
			tc.id + ".Q5_K_M.gguf", tc.id + "@0123abc", "./" + tc.id + "/", "s3://bucket/" + tc.id + "/checkpoint-500",
		} {
			name, _ := parsers.LookupModel(id)
			require.Equal(t, tc.name, name, id)
		}
	}
}

// Every name is known to the default registry. It will have 35 families; while it has less, some are missing.
func TestLookupModelResolves(t *testing.T) {
	r := parsers.Default()
	if n := len(r.Names()); n < 35 {
		t.Skipf("only %d of 35 families are registered yet", n)
	}
	for _, tc := range modelIDs {
		if tc.name == "" {
			continue
		}
		for half := range strings.SplitSeq(tc.name, "+") {
			_, err := r.Lookup(half)
			require.NoError(t, err, tc.id)
		}
	}
}

// What distinguishes the families of MiMo V2 and Step 3.5 from qwen3_coder reaches the parser that LookupModel names.
func TestLookupModelParses(t *testing.T) {
	const call = "<tool_call>\n<function=run>\n<parameter=cmd>ls\n</parameter>\n</function>\n</tool_call>"
	for _, tc := range []struct{ id, in, want string }{
		{"XiaomiMiMo/MiMo-V2-Flash", call, `call run {"cmd":"ls\n"}`},
		{"stepfun-ai/Step-3.5-Flash", "Hm.\n</think>\nHi.\n" + call, `reasoning "Hm."` + "\n" + `text "Hi.\n"` + "\n" + `call run {"cmd":"ls"}`},
	} {
		name, _ := parsers.LookupModel(tc.id)
		require.Equal(t, tc.want+"\n", assembled(parse(t, name, parsers.Options{}, tc.in)))
	}
}

func FuzzLookupModel(f *testing.F) {
	for _, tc := range modelIDs {
		f.Add(tc.id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name, ok := parsers.LookupModel(id)
		require.Equal(t, ok, name != "")
	})
}

func ExampleLookupModel() {
	for _, id := range []string{"unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3:30b-a3b-thinking-2507", "my-model"} {
		name, ok := parsers.LookupModel(id)
		fmt.Printf("%q %t\n", name, ok)
	}
	// Output:
	// "qwen3_coder" true
	// "qwen3_thinking" true
	// "" false
}
