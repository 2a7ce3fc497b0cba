//go:build linux || darwin || freebsd || netbsd

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const attribute = "user.storagemux"

// setAttribute stores data with f. errors.ErrUnsupported means that the file
// system has no extended attributes.
func setAttribute(f *os.File, data []byte) error {
	return control(f, func(fd int) error { return unix.Fsetxattr(fd, attribute, data, 0) })
}

// getAttribute returns what setAttribute stored, or nil.
func getAttribute(f *os.File) (data []byte, err error) {
	err = control(f, func(fd int) error {
		var small [1 << 10]byte
		n, err := unix.Fgetxattr(fd, attribute, small[:])
		if err == nil {
			data = append(data, small[:n]...)
			return nil
		}
		if !errors.Is(err, unix.ERANGE) {
			return err
		}
		large := make([]byte, maxRecord)
		if n, err = unix.Fgetxattr(fd, attribute, large); err == nil {
			data = large[:n]
		}
		return err
	})
	if errors.Is(err, noAttribute) || errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return data, err
}

func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = do(int(fd))
		}
	}); err != nil {
		return err
	}
	if failed == unix.ENOTSUP || failed == unix.EOPNOTSUPP {
		return errors.ErrUnsupported
	}
	if failed != nil {
		return &os.PathError{Op: "xattr", Path: f.Name(), Err: failed}
	}
	return nil
}

// lock takes a lock on f, shared or exclusive, that ends when f is closed. It
// excludes other processes, and other opened files of this one.
func lock(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	return control(f, func(fd int) error { return unix.Flock(fd, how) })
}

// tryLock is lock, exclusive, without waiting; it reports whether it has it.
func tryLock(f *os.File) bool {
	return control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }) == nil
}

// outOfSpace reports that the disk is full or the quota used up.
func outOfSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func tooLongName(err error) bool  { return errors.Is(err, unix.ENAMETOOLONG) }
func tooLargeFile(err error) bool { return errors.Is(err, unix.EFBIG) }
func readOnly(err error) bool     { return errors.Is(err, unix.EROFS) }

// tooLargeAttribute reports that an attribute does not fit, which some file
// systems say with the code of a full disk.
func tooLargeAttribute(err error) bool {
	return errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ERANGE) || errors.Is(err, unix.ENOSPC)
}

func isDirectory(err error) bool {
	return errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY)
}
func notDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) }

// openFlags keep a pipe that somebody put into the folder from blocking.
const openFlags = os.O_RDONLY | unix.O_NONBLOCK
