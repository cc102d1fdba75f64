// SPDX-License-Identifier: Apache-2.0

package conformance

// explained says, per peer, why weft differs on a vector of its tests. A key is a vector's id without the peer, or the
// beginning of ids up to a slash.
var explained = map[string]map[string]reason{
	"ollama": {
		"qwen3_coder/TestQwenParserStreaming.synth/20": losesHeld,
	},
	"smg": {
		"qwen25/tool_parser_fallback.test_mixed_valid_and_invalid_content": trailingTextKept,
		"qwen25/tool_parser_qwen.test_qwen_real_world_output":              trailingTextKept,
		"qwen25/tool_parser_qwen.test_qwen_with_text_between":              trailingTextKept,

		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_empty_parameter_value":     trimsValues,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_whitespace_handling":       trimsValues,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_mixed_html_and_json":       guessesTypes,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_nested_json_in_parameters": guessesTypes,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_python_literals":           guessesTypes,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_string_parameters":         guessesTypes,
		"qwen3_coder/tool_parser_qwen_xml.test_qwen_xml_type_conversion":           guessesTypes,
	},
	"harmony": {},
}
