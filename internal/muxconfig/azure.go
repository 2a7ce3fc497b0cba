package muxconfig

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// Azure is a container of Azure Blob Storage.
type Azure struct {
	// Endpoint is the address of the account's blob service.
	Endpoint  string    `json:"endpoint"`
	Container string    `json:"container"`
	Prefix    string    `json:"prefix,omitempty"`
	Auth      AzureAuth `json:"auth"`
}

// AzureAuth says who the proxy is for Azure.
type AzureAuth struct {
	// Type is "Secret", "Ambient" or "Anonymous".
	Type string `json:"type"`
	// With type Secret there are Account and Key, in base64, or SASToken.
	Account  string `json:"account,omitempty"`
	Key      Secret `json:"key,omitempty"`
	SASToken Secret `json:"sasToken,omitempty"`
}

// Problem says what is wrong with a, in terms of the keys of its Secret, or "".
func (a AzureAuth) Problem() string {
	if a.Type != AuthSecret {
		return ""
	}
	if a.SASToken != "" {
		query, err := url.ParseQuery(strings.TrimPrefix(a.SASToken.Reveal(), "?"))
		switch {
		case a.Account != "" || a.Key != "":
			return "must have AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN, and not both"
		case err != nil || query.Get("sig") == "" || !isHeaderValue(a.SASToken.Reveal()):
			return "must have a signature such as sv=...&sig=... under AZURE_STORAGE_SAS_TOKEN, without a line break"
		}
		return ""
	}
	if a.Account == "" || a.Key == "" {
		return "must have AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN"
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(a.Key.Reveal()); err != nil || !isHeaderValue(a.Account) {
		return "must have a key in base64 under AZURE_STORAGE_KEY, and no line break under AZURE_STORAGE_ACCOUNT"
	}
	return ""
}

func validateAzure(field string, a *Azure) error {
	switch auth := a.Auth; {
	case a.Endpoint == "":
		return invalid(field+".endpoint", "must not be empty")
	case a.Container == "" || strings.Contains(a.Container, "/"):
		return invalid(field+".container", "must not be empty nor contain a slash")
	case auth.Type != AuthSecret && auth.Type != AuthAmbient && auth.Type != AuthAnonymous:
		return invalid(field+".auth.type", "%q must be Secret, Ambient or Anonymous", auth.Type)
	case auth.Problem() != "":
		return invalid(field+".auth", "%s", auth.Problem())
	}
	return nil
}

// Format implements fmt.Formatter.
func (a Azure) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "container %s of %s", a.Container, a.Endpoint)
}

// Format implements fmt.Formatter.
func (a AzureAuth) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "auth %s %s", a.Type, a.Account)
}
