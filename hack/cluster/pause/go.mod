module github.com/suaveplan/storagemux/hack/cluster/pause

go 1.26.0

tool github.com/suaveplan/storagemux/hack/cluster/pause
