package file

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// wrap turns an error of the file system into a storage.Error.
func wrap(err error, op, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if storage.CodeOf(err) != "" || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return storage.Errorf(codeOf(err), op, format, args...).WithCause(err)
}

func codeOf(err error) storage.Code {
	switch {
	case outOfSpace(err):
		return storage.CodeNoSpace
	case tooLargeFile(err):
		return storage.CodeTooLarge
	case tooLongName(err):
		return storage.CodeInvalidKey
	case errors.Is(err, fs.ErrPermission), readOnly(err), escapes(err):
		return storage.CodeAccessDenied
	default:
		return storage.CodeUnavailable
	}
}

// escapes reports that os.Root refused to follow a link out of the root.
func escapes(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "path escapes from parent")
}

// notFolder reports that a folder was wanted where there is a file. os.Root
// says that in words of its own in some places.
func notFolder(err error) bool {
	return notDirectory(err) || err != nil && strings.HasSuffix(err.Error(), "not a directory")
}

// missing reports that there is no file at a path, for whatever reason.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || notFolder(err) || escapes(err)
}
