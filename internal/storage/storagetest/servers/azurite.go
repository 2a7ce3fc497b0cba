package servers

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

// Azurite is the vendor's own server of Azure Blob Storage for tests.
type Azurite struct {
	Endpoint, Account, Key string
	containers             atomic.Int32
}

// StartAzurite runs Azurite, from npm.
func StartAzurite(t testing.TB) *Azurite {
	t.Helper()
	path := binary(t, "STORAGEMUX_AZURITE", "azurite")
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	// The one account that it has, which everybody knows.
	a := &Azurite{
		Account: "devstoreaccount1",
		Key:     "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
	}
	dir := tempDir(t)
	cmd := exec.Command(path, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobHost", host, "--blobPort", port, "--location", dir)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	start(t, cmd, address)
	a.Endpoint = "http://" + address + "/" + a.Account
	return a
}

// Container makes an empty container and returns its name.
func (a *Azurite) Container(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("container-%d", a.containers.Add(1))
	key, err := container.NewSharedKeyCredential(a.Account, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := container.NewClientWithSharedKeyCredential(a.Endpoint+"/"+name, key,
		&container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err == nil {
		_, err = client.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatalf("making a container: %v", err)
	}
	return name
}

// SAS returns a shared access signature of a container, which allows all that
// stores do and ends at the given time.
func (a *Azurite) SAS(t testing.TB, name string, expiry time.Time) string {
	t.Helper()
	key, err := container.NewSharedKeyCredential(a.Account, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	query, err := sas.BlobSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, StartTime: expiry.Add(-time.Hour), ExpiryTime: expiry, ContainerName: name,
		Permissions: (&sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}).String(),
	}.SignWithSharedKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return query.Encode()
}
