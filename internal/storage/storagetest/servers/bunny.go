package servers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Bunny is a server of storage zones. The vendor has none to run: this one is
// ours and follows the published API of its edge storage. A zone is a tree of
// folders, which a PUT makes as needed and which stay; GET of a folder, with a
// slash at its end, lists it as JSON; a PUT whose body does not fit the header
// Checksum is refused with 400; there is no HEAD; DELETE of a folder removes all
// that is in it; a wrong AccessKey, or one of another zone, is 401.
type Bunny struct {
	Endpoint  string
	AccessKey string
	dir       string
	zones     atomic.Int32
	mu        sync.RWMutex
	types     map[string]string // content types, by path
}

// StartBunny runs such a server in this process.
func StartBunny(t testing.TB) *Bunny {
	t.Helper()
	b := &Bunny{AccessKey: "zone-password", dir: tempDir(t), types: map[string]string{}}
	if err := os.Mkdir(filepath.Join(b.dir, "uploads"), 0o755); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(server.Close)
	b.Endpoint = server.URL
	return b
}

// Zone makes an empty zone and returns its name.
func (b *Bunny) Zone(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("zone-%d", b.zones.Add(1))
	if err := os.MkdirAll(filepath.Join(b.dir, "zones", name), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Debris lists the uploads that have not ended.
func (b *Bunny) Debris(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, "uploads"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// Folder lists what is in a folder of a zone, folders among it, which stay when
// they are empty.
func (b *Bunny) Folder(t testing.TB, zone, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, "zones", zone, filepath.FromSlash(folder)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func (b *Bunny) serve(w http.ResponseWriter, r *http.Request) {
	zone, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	root := filepath.Join(b.dir, "zones", zone)
	if stat, err := os.Stat(root); err != nil || !stat.IsDir() || zone == "" || r.Header.Get("AccessKey") != b.AccessKey {
		answer(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	folder := name == "" || strings.HasSuffix(name, "/")
	clean := path.Clean("/" + name)
	if folder && clean != "/" {
		clean += "/"
	}
	if "/"+name != clean || strings.Contains(name, "\\") {
		answer(w, http.StatusBadRequest, "Invalid path")
		return
	}
	file := filepath.Join(root, filepath.FromSlash(clean))
	switch {
	case r.Method == http.MethodGet && folder:
		b.list(w, zone, clean, file)
	case r.Method == http.MethodGet:
		b.download(w, r, file)
	case r.Method == http.MethodPut && !folder:
		b.upload(w, r, file)
	case r.Method == http.MethodDelete && clean != "/":
		b.remove(w, file)
	default:
		answer(w, http.StatusMethodNotAllowed, "Method not allowed")
	}
}

func answer(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"HttpCode": status, "Message": message})
}

func (b *Bunny) download(w http.ResponseWriter, r *http.Request, file string) {
	b.mu.RLock()
	f, err := os.Open(file)
	contentType := b.types[file]
	b.mu.RUnlock()
	if err != nil {
		answer(w, http.StatusNotFound, "Object Not Found")
		return
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil || stat.IsDir() {
		answer(w, http.StatusNotFound, "Object Not Found")
		return
	}
	w.Header().Set("Content-Type", contentType)
	http.ServeContent(w, r, "", stat.ModTime(), f)
}

func (b *Bunny) upload(w http.ResponseWriter, r *http.Request, file string) {
	f, err := os.CreateTemp(filepath.Join(b.dir, "uploads"), "upload-*")
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), r.Body); err != nil {
		answer(w, http.StatusBadRequest, "The upload was cut")
		return
	}
	if want := r.Header.Get("Checksum"); want != "" && want != strings.ToUpper(hex.EncodeToString(sum.Sum(nil))) {
		answer(w, http.StatusBadRequest, "The checksum does not match")
		return
	}
	contentType := r.Header.Get("Override-Content-Type")
	if contentType == "" {
		contentType = mime.TypeByExtension(path.Ext(file))
	}
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err = os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, "Invalid path")
		return
	}
	b.types[file] = contentType
	answer(w, http.StatusCreated, "File uploaded.")
}

func (b *Bunny) remove(w http.ResponseWriter, file string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := os.Stat(file); err != nil {
		answer(w, http.StatusNotFound, "Object Not Found")
		return
	}
	if err := os.RemoveAll(file); err != nil {
		answer(w, http.StatusBadRequest, "Delete failed")
		return
	}
	answer(w, http.StatusOK, "File deleted successfuly.")
}

// bunnyTime is how the API writes times, which are of UTC.
const bunnyTime = "2006-01-02T15:04:05.999"

func (b *Bunny) list(w http.ResponseWriter, zone, folder, dir string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	entries, _ := os.ReadDir(dir) // a folder that is not there is empty
	found := []map[string]any{}
	for i := range entries {
		e := entries[len(entries)-1-i] // in no order that clients could rely on
		stat, err := e.Info()
		if err != nil {
			continue
		}
		file := filepath.Join(dir, e.Name())
		element := map[string]any{
			"Guid": fmt.Sprintf("00000000-0000-0000-0000-%012d", i), "StorageZoneName": zone, "Path": "/" + zone + folder, "ObjectName": e.Name(),
			"Length": 0, "LastChanged": stat.ModTime().UTC().Format(bunnyTime), "DateCreated": stat.ModTime().UTC().Format(bunnyTime),
			"IsDirectory": e.IsDir(), "ContentType": b.types[file], "Checksum": nil, "ServerId": 1, "ArrayNumber": 0, "StorageZoneId": 1,
			"UserId": "u", "ReplicatedZones": nil,
		}
		if !e.IsDir() {
			element["Length"] = stat.Size()
			element["Checksum"] = checksumOf(file)
		}
		found = append(found, element)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
}

func checksumOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	_, _ = io.Copy(sum, f)
	return strings.ToUpper(hex.EncodeToString(sum.Sum(nil)))
}
