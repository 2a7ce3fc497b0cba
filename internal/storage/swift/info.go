package swift

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

func infoOf(key string, size int64, h http.Header) storage.Info {
	info := storage.Info{
		Key: key, Size: size, ETag: wire.Unquote(h.Get("Etag")), ModTime: modified(h),
		Headers: storage.Headers{
			ContentType:        h.Get("Content-Type"),
			CacheControl:       h.Get("Cache-Control"),
			ContentDisposition: h.Get("Content-Disposition"),
			ContentEncoding:    h.Get("Content-Encoding"),
			ContentLanguage:    h.Get("Content-Language"),
			Expires:            h.Get("Expires"),
		},
	}
	for name, values := range h {
		if meta, is := strings.CutPrefix(name, metaHeader); is {
			if info.Metadata == nil {
				info.Metadata = map[string]string{}
			}
			info.Metadata[names.From(meta)] = strings.Join(values, ",")
		}
	}
	return info
}

// modified is the time of the last write. Last-Modified is rounded up to a
// second; X-Timestamp is exact.
func modified(h http.Header) time.Time {
	if seconds, err := strconv.ParseFloat(h.Get("X-Timestamp"), 64); err == nil {
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(part*1e6)*1e3).UTC()
	}
	at, _ := http.ParseTime(h.Get("Last-Modified"))
	return at.UTC()
}
