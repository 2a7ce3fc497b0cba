// Command etcd is upstream's server. It has a main package here only because upstream's stands at the root of a module
// whose path ends in server/v3, after which the go command would name the binary.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
