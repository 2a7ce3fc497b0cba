package s3

import (
	"encoding/xml"
	"net/http"
)

// writeACL says that the owner may do everything, and nobody else anything.
func writeACL(_ *request, d document) {
	d.root("AccessControlPolicy")
	d.owner("Owner")
	d.open("AccessControlList")
	d.open("Grant")
	d.buf.WriteString(`<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">`)
	d.text("ID", ownerID)
	d.text("DisplayName", ownerName)
	d.close("Grantee")
	d.text("Permission", "FULL_CONTROL")
	d.close("Grant")
	d.close("AccessControlList")
	d.close("AccessControlPolicy")
}

// putACL takes the one ACL that there is, by name or as writeACL gave it to a
// client that copies ACLs along with objects.
func putACL(q *request) error {
	if err := refuseUnkept(q.r.Header); err != nil {
		return err
	}
	body, err := q.readXML(maxXMLBytes)
	if err != nil {
		return err
	}
	if q.r.Header.Get("X-Amz-Acl") == "" && !grantsOwnerOnly(body) {
		return aclNotSupported()
	}
	q.done(http.StatusOK)
	return nil
}

func aclNotSupported() error {
	return refuse("AccessControlListNotSupported", http.StatusBadRequest, "The bucket does not allow ACLs.")
}

func grantsOwnerOnly(body []byte) bool {
	var policy struct {
		XMLName xml.Name `xml:"AccessControlPolicy"`
		Grants  []struct {
			ID         string `xml:"Grantee>ID"`
			Permission string `xml:"Permission"`
		} `xml:"AccessControlList>Grant"`
	}
	if xml.Unmarshal(body, &policy) != nil || len(policy.Grants) == 0 {
		return false
	}
	for _, grant := range policy.Grants {
		if grant.ID != ownerID || grant.Permission != "FULL_CONTROL" {
			return false
		}
	}
	return true
}
