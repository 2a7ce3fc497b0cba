package s3

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	xmlNamespace = "http://s3.amazonaws.com/doc/2006-03-01/"
	xmlTime      = "2006-01-02T15:04:05.000Z"
	// ownerID and ownerName stand for the one owner of everything.
	ownerID   = "storagemux"
	ownerName = "storagemux"
)

var xmlBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// document writes an XML answer. Names of elements are ours; text is escaped.
type document struct{ buf *bytes.Buffer }

func newDocument() document {
	d := document{xmlBuffers.Get().(*bytes.Buffer)}
	d.buf.Reset()
	d.buf.WriteString(xml.Header)
	return d
}

// release gives the buffer back, unless it grew beyond what is worth keeping.
func (d document) release() {
	if d.buf.Cap() <= 1<<20 {
		xmlBuffers.Put(d.buf)
	}
}

// root opens the outermost element, in S3's namespace.
func (d document) root(name string) {
	d.buf.WriteString("<" + name + ` xmlns="` + xmlNamespace + `">`)
}

// rootText writes a document that is one element in S3's namespace.
func (d document) rootText(name, value string) {
	d.root(name)
	_ = xml.EscapeText(d.buf, []byte(value))
	d.close(name)
}

func (d document) open(name string) {
	d.buf.WriteByte('<')
	d.buf.WriteString(name)
	d.buf.WriteByte('>')
}

func (d document) close(name string) {
	d.buf.WriteString("</")
	d.buf.WriteString(name)
	d.buf.WriteByte('>')
}

func (d document) text(name, value string) {
	d.open(name)
	if plain(value) {
		d.buf.WriteString(value)
	} else {
		// A bytes.Buffer never fails.
		_ = xml.EscapeText(d.buf, []byte(value))
	}
	d.close(name)
}

// plain reports whether value is the same when it is escaped.
func plain(value string) bool {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ', c >= 0x7f, c == '&', c == '<', c == '>', c == '"', c == '\'':
			return false
		}
	}
	return true
}

// optional writes the element only if value is not empty.
func (d document) optional(name, value string) {
	if value != "" {
		d.text(name, value)
	}
}

func (d document) number(name string, value int64) { d.text(name, strconv.FormatInt(value, 10)) }
func (d document) boolean(name string, value bool) { d.text(name, strconv.FormatBool(value)) }
func (d document) time(name string, value time.Time) {
	d.open(name)
	d.buf.Write(value.UTC().AppendFormat(d.buf.AvailableBuffer(), xmlTime))
	d.close(name)
}

func (d document) owner(name string) {
	d.open(name)
	d.text("ID", ownerID)
	d.text("DisplayName", ownerName)
	d.close(name)
}

// writeDocument answers with d and releases it.
func (q *request) writeDocument(status int, d document) error {
	defer d.release()
	header := q.w.Header()
	header["Content-Type"] = []string{"application/xml"}
	header["Content-Length"] = []string{strconv.Itoa(d.buf.Len())}
	q.begin(status)
	if q.r.Method == http.MethodHead {
		return nil
	}
	n, err := q.w.Write(d.buf.Bytes())
	q.stats.BytesOut += int64(n)
	return err
}

// errorDocument makes the XML of an error.
func (q *request) errorDocument(e *apiError) document {
	d := newDocument()
	d.open("Error")
	d.text("Code", e.Code)
	d.text("Message", e.Message)
	d.text("Resource", q.r.URL.Path)
	d.text("RequestId", q.id)
	d.close("Error")
	return d
}
