// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/weft-go/weft/tokenizers/mini"
)

// modelID matches the id of a Hugging Face model.
var modelID = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// Model returns the files of the model in directory dir. If dir is "mini", it returns the small tokenizer of this
// repository. flag is the name of the flag for dir, for error texts.
func Model(flag, dir string) (fs.FS, error) {
	switch dir {
	case "":
		return nil, Usagef("no model: set -%s DIR, or -%[1]s mini for the small tokenizer of this repository", flag)
	case "mini":
		return mini.FS(), nil
	}
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && modelID.MatchString(dir):
		return nil, fmt.Errorf("no directory %[1]s; if it is a model on Hugging Face, download its files (hf download %[1]s --local-dir %[2]s) and set -%[3]s %[2]s",
			dir, dir[strings.LastIndexByte(dir, '/')+1:], flag)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no directory %s", dir)
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s is a file; use its directory", dir)
	}
	return os.DirFS(dir), nil
}

// InModel adds the directory of a model to an error of loading it, unless the error contains it.
func InModel(dir string, err error) error {
	if err == nil || strings.Contains(err.Error(), dir) {
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}
