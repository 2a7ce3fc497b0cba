#!/usr/bin/env bash
# Usage: hack/verify.sh [CHECK...]
#
# Checks everything that needs no running test, or only the checks named: the functions check_NAME below. All of them
# run even when an earlier one failed, and the work tree stays as it is.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

all=(generated tidy format lint scripts promises)

# Generates everything in a copy of the work tree, committed or not, so that a stale, missing or
# superfluous file shows as a diff.
check_generated() {
  local copy
  copy=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder's name is needed now: the variable is gone when the trap runs
  trap "rm -rf '$copy'" EXIT
  tree_files | tar -c --null -T - | tar -x -C "$copy"
  git -C "$copy" init -q
  git -C "$copy" add -A
  rm -rf "$copy"/{api/v1alpha1/{applyconfiguration,zz_generated.deepcopy.go},config/{crd/bases,rbac/role.yaml},docs/reference/{api,conditions}.md,dist/install.yaml}
  make -C "$copy" --no-print-directory generate manifests VERSION=verify IMAGE=localhost/storagemux:dev
  git -C "$copy" add -A -N
  git -C "$copy" --no-pager diff --exit-code ||
    die "generated files are not current: run 'make generate manifests' and commit what it changes"
}

check_tidy() {
  go mod tidy -diff || die "go.mod is not tidy: run 'go mod tidy'"
  go mod verify
}

check_format() {
  local unformatted
  unformatted=$(tree_files '*.go' | xargs -0 gofmt -l)
  [[ -z $unformatted ]] || die "not formatted, run 'make fmt':"$'\n'"$unformatted"
}

check_lint() { make --no-print-directory lint; }

check_scripts() {
  need_packages shellcheck=shellcheck
  tree_files '*.sh' .ci/run | xargs -0 shellcheck
}

# Every test that docs/guarantees.md names must be there, and every line of its table of modes must name one.
check_promises() {
  local name bare missing=() source=docs/guarantees.md
  while IFS= read -r name; do
    git grep --untracked -qE "^func ${name%%/*}\(" -- '*_test.go' || missing+=("$name")
  done < <(grep -oE "\`Test[A-Za-z0-9_]+[^\`]*\`" $source | tr -d "\`" | sort -u)
  while IFS= read -r name; do
    git grep --untracked -qF "It(\"$name\"" -- test/e2e || missing+=("end to end: $name")
  done < <(grep -oE 'end to end: "[^"]+"' $source | cut -d'"' -f2 | sort -u)
  bare=$(sed -n '/^| mode, keyspace /,/^$/p' $source | tail -n +3 | grep '^|' | grep -v "\`Test" || true)
  [[ -z $bare ]] || die "$source has lines without a test:"$'\n'"$bare"
  ((${#missing[@]} == 0)) || die "$source names tests that do not exist: ${missing[*]}"
}

# tree_files [PATTERN...]: the files that git knows or would take, each ended by a zero byte.
tree_files() {
  local file
  git ls-files -z --cached --others --exclude-standard -- "$@" | while IFS= read -r -d '' file; do
    [[ ! -e $file ]] || printf '%s\0' "$file"
  done
}

(($#)) || set -- "${all[@]}"
failed=()
for check in "$@"; do
  log "verify $check ..."
  start=$SECONDS
  # Not as the condition of an if, which would switch off -e inside.
  set +e
  (set -e && "check_$check")
  status=$?
  set -e
  if ((status == 0)); then
    log "verify $check: ok ($((SECONDS - start)) s)"
  else
    log "verify $check: FAILED ($((SECONDS - start)) s)"
    failed+=("$check")
  fi
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
