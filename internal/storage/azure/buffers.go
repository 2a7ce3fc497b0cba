package azure

import "sync"

// buffers are those that blocks of unknown number are collected in.
type buffers struct{ pool sync.Pool }

var bufferPool = &buffers{pool: sync.Pool{New: func() any { return new([bufferedBlock]byte) }}}

func (b *buffers) get() *[bufferedBlock]byte  { return b.pool.Get().(*[bufferedBlock]byte) }
func (b *buffers) put(p *[bufferedBlock]byte) { b.pool.Put(p) }
