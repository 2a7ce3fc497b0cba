package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// errOpen does not say what was wrong: a client could learn from it.
var errOpen = errors.New("open a sealed value: it was not sealed here, or was changed")

// Sealer encrypts and authenticates with AES-256-GCM. The current key seals,
// the current and the previous one open.
type Sealer struct{ keys []cipher.AEAD }

// New makes a Sealer of keys of 32 bytes in base64. previous may be empty.
func New(current, previous string) (*Sealer, error) {
	s := &Sealer{}
	for _, text := range []string{current, previous} {
		if text == "" && len(s.keys) > 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != 32 {
			return nil, errors.New("make a sealer: a key must be 32 bytes in base64")
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("make a sealer: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("make a sealer: %w", err)
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

// Seal encrypts plain. It opens for the same purpose only.
func (s *Sealer) Seal(purpose string, plain []byte) []byte {
	return s.keys[0].Seal(nil, nil, plain, []byte(purpose))
}

// Open returns what was sealed for purpose.
func (s *Sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	for _, key := range s.keys {
		if plain, err := key.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, errOpen
}

// NewKey returns a random key for New.
func NewKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}
