module github.com/suaveplan/storagemux/hack/tools/versitygw

go 1.26.0

tool github.com/versity/versitygw/cmd/versitygw
