// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// mistralFormat selects the format of a Mistral model, which has no template but a version.
type mistralFormat struct {
	variables      map[string]any // of the format mistral
	family, source string
}

// findMistral returns the format of a directory with tekken.json or a SentencePiece model of Mistral, or nil if it has
// neither. has reports whether the vocabulary has all of some tokens.
func findMistral(fsys fs.FS, has func(...string) bool) (*mistralFormat, error) {
	version, file := 0, tekkenFile
	vars := map[string]any{}
	data, err := fs.ReadFile(fsys, tekkenFile)
	switch {
	case err == nil:
		if version, err = readTekken(data, vars); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		if version, file = pieceVersion(fsys); version == 0 && has("[INST]", "[/INST]", "[TOOL_CALLS]") {
			version = 3 // v2 has the same vocabulary, but only one model
			if has("[SYSTEM_PROMPT]") {
				version = 7
			}
		}
	}
	if version == 0 {
		return nil, nil
	}
	f := &mistralFormat{variables: vars, family: "mistral", source: fmt.Sprintf("Mistral's format v%d, from %s", version, file)}
	vars["version"] = version
	switch think := has("[THINK]", "[/THINK]"); {
	case version >= 13 && think:
		f.family, vars["thinking"] = "ministral", true
	case version >= 11:
		f.family = "mistral_v11"
	}
	return f, nil
}

const tekkenFile = "tekken.json"

// readTekken returns the version in a tekken.json and sets the variables for the settings of the model.
func readTekken(data []byte, vars map[string]any) (int, error) {
	var file struct {
		Config   struct{ Version string }
		Settings struct {
			Effort *struct {
				Values  []string
				Default *string
			} `json:"reasoning_effort"`
		} `json:"model_settings_builder"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return 0, fmt.Errorf("%s: %w", tekkenFile, err)
	}
	version, err := strconv.Atoi(strings.TrimPrefix(file.Config.Version, "v"))
	if known := []int{1, 2, 3, 7, 11, 13, 15}; err != nil || !slices.Contains(known, version) {
		return 0, fmt.Errorf("%s: config.version is %q: the format of its prompts is unknown, and the directory has no template", tekkenFile, file.Config.Version)
	}
	if e := file.Settings.Effort; e != nil {
		vars["reasoning_efforts"] = e.Values
		if e.Default != nil {
			vars["reasoning_effort"] = *e.Default
		}
	}
	return version, nil
}

// pieceVersion returns the version in the name of a SentencePiece model, such as tokenizer.model.v3 or
// tokenizer.model.v7m1, or 0.
func pieceVersion(fsys fs.FS) (version int, file string) {
	names, _ := fs.Glob(fsys, "*.model.v*")
	for _, name := range names {
		_, v, _ := strings.Cut(name, ".model.v")
		v, _, _ = strings.Cut(v, "m")
		if n, err := strconv.Atoi(v); err == nil && n > version && n <= 7 {
			version, file = n, name
		}
	}
	if version == 0 {
		file = "the control tokens"
	}
	return version, file
}
