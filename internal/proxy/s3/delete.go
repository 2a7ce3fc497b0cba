package s3

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

const (
	// maxXMLBytes bounds the XML that a client sends: 10,000 parts or 1,000
	// keys, with what belongs to them.
	maxXMLBytes = 4 << 20
	// maxDeleteKeys is the most keys of one DeleteObjects.
	maxDeleteKeys = 1000
	// deleteWorkers is how many keys of one DeleteObjects are deleted at a time.
	deleteWorkers = 8
)

func deleteObject(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	for _, name := range []string{"X-Amz-If-Match-Size", "X-Amz-If-Match-Last-Modified-Time"} {
		if q.r.Header.Get(name) != "" {
			return notImplemented("The only condition of a delete is If-Match.")
		}
	}
	if err := q.deleteIf(q.target.key, q.r.Header.Get("If-Match")); err != nil {
		return err
	}
	q.begin(http.StatusNoContent)
	return nil
}

// deleteIf deletes key, with the value of If-Match or without.
func (q *request) deleteIf(key, ifMatch string) error {
	conditions := storage.Conditions{}
	if ifMatch != "" {
		var err error
		if conditions, err = writeConditions(http.Header{"If-Match": {ifMatch}}, q.cfg.Storage.Capabilities()); err != nil {
			return err
		}
	}
	return storage.DeleteIf(q.r.Context(), q.cfg.Storage, key, conditions)
}

// deleteRequest is the body of DeleteObjects.
type deleteRequest struct {
	XMLName xml.Name       `xml:"Delete"`
	Quiet   bool           `xml:"Quiet"`
	Objects []deleteTarget `xml:"Object"`
}

type deleteTarget struct {
	Key       string `xml:"Key"`
	VersionID string `xml:"VersionId"`
	ETag      string `xml:"ETag"`
}

func parseDelete(body []byte) (deleteRequest, error) {
	var parsed deleteRequest
	if err := xml.Unmarshal(body, &parsed); err != nil || len(parsed.Objects) == 0 || len(parsed.Objects) > maxDeleteKeys {
		return deleteRequest{}, &apiError{
			Code: "MalformedXML", Status: http.StatusBadRequest,
			Message: "The XML must be a Delete of 1 to 1000 objects.", cause: err,
		}
	}
	return parsed, nil
}

func deleteObjects(q *request) error {
	body, err := q.readXML(maxXMLBytes)
	if err != nil {
		return err
	}
	wanted, err := parseDelete(body)
	if err != nil {
		return err
	}
	failures := make([]error, len(wanted.Objects))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(deleteWorkers, len(wanted.Objects)) {
		workers.Go(func() {
			for i := range next {
				failures[i] = q.deleteOne(wanted.Objects[i])
			}
		})
	}
	for i := range wanted.Objects {
		next <- i
	}
	close(next)
	workers.Wait()
	if err := q.r.Context().Err(); err != nil {
		return err
	}

	d := newDocument()
	d.root("DeleteResult")
	for i, object := range wanted.Objects {
		switch failure := failures[i]; {
		case failure != nil:
			e := toAPIError(failure)
			d.open("Error")
			d.text("Key", object.Key)
			d.text("Code", e.Code)
			d.text("Message", e.Message)
			d.close("Error")
		case !wanted.Quiet:
			d.open("Deleted")
			d.text("Key", object.Key)
			d.optional("VersionId", object.VersionID)
			d.close("Deleted")
		}
	}
	d.close("DeleteResult")
	return q.writeDocument(http.StatusOK, d)
}

func (q *request) deleteOne(object deleteTarget) error {
	if err := checkKey(object.Key); err != nil {
		return err
	}
	if object.VersionID != "" && object.VersionID != "null" {
		return refuse("NoSuchVersion", http.StatusNotFound, "The bucket keeps no versions.")
	}
	return q.deleteIf(object.Key, object.ETag)
}

// readXML reads and verifies a body of at most limit bytes, which is held in
// memory. What is held grows
// with what arrives, not with what was announced.
func (q *request) readXML(limit int64) ([]byte, error) {
	payload, err := q.openBody(limit)
	if err != nil {
		return nil, err
	}
	if payload.Size <= smallBytes {
		body := make([]byte, payload.Size)
		return body, q.body.ReadFull(body)
	}
	var body bytes.Buffer
	_, err = q.body.WriteTo(&body)
	return body.Bytes(), err
}
