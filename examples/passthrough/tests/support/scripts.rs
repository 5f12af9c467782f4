//! What the programs do. Each script prints what it sees.

pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Without one of these it is skipped. The first one decides who reads the script: python3, else sh.
    pub(crate) needs: &'static [&'static str],
    pub(crate) script: &'static str,
    /// Ends of names of entries that differ from run to run.
    pub(crate) private: &'static [&'static str],
}

pub(crate) const PROGRAMS: &[Program] = &[
    Program { name: "find", needs: &["find", "cksum", "grep"], script: FIND, private: &[] },
    Program { name: "cp", needs: &["cp", "diff", "find"], script: CP, private: &[] },
    Program { name: "tar", needs: &["tar", "diff", "find"], script: TAR, private: &[] },
    Program { name: "git", needs: &["git"], script: GIT, private: &[".git"] },
    Program { name: "dd", needs: &["dd", "sort"], script: DD, private: &[] },
    Program { name: "sqlite3", needs: &["sqlite3"], script: SQLITE, private: &[".db"] },
    Program {
        name: "sqlite3 in Python",
        needs: &["python3"],
        script: include_str!("wal.py"),
        private: &[".db"],
    },
    Program {
        name: "system calls",
        needs: &["python3"],
        script: include_str!("calls.py"),
        private: &[],
    },
    Program {
        name: "set-id bits",
        needs: &["setpriv", "truncate", "fallocate", "stat"],
        script: SET_IDS,
        private: &[],
    },
    Program {
        name: "privileges in Python",
        needs: &["python3"],
        script: include_str!("privileges.py"),
        private: &[],
    },
];

/// On what was there before the mount, so that the kernel has not heard of any of it.
const FIND: &str = r#"
find ../ready -printf '%p %m %n %s %y\n' | sort
find ../ready -type f -exec cat {} + | cksum
grep -rc fn ../ready | sort
cp -r ../ready copy; diff -r ../ready copy; rm -r copy
"#;

const CP: &str = r#"
cp -r "$LIBRARY/src" first
cp -a first second
find first -newermt 2000-01-01 -printf '%p %m %s %y\n' | sort
find second -type f -exec cmp {} {} \;
diff -r first second && echo equal
(cd first && find . -printf '%p %T@\n' | sort) > times-first
(cd second && find . -printf '%p %T@\n' | sort) > times-second
cmp times-first times-second && echo times preserved
rm times-*
ln first/lib.rs hard; ln -s first/lib.rs soft; cp -d soft copy; cmp hard soft
mkdir -p a/b/c; mv first a/b/c; mv a/b z; rmdir a/b 2>&1 || true
rm -r second; cp missing there 2>&1 || true; mkdir z 2>&1 || true
for copy in 1 2 3 4; do cp -r z "copy$copy" & done; wait
find . | sort | wc -l
"#;

const TAR: &str = r#"
cp -r "$LIBRARY/src" "$LIBRARY/examples/replay" .
find . -exec touch -d '2001-02-03 04:05:06.789' {} +
tar cf all.tar --sort=name src replay
tar tf all.tar | wc -l
mkdir out; tar xpf all.tar -C out
diff -r src out/src && diff -r replay out/replay && echo equal
tar df all.tar -C out && echo no difference in mode, owner or time
tar czf - --sort=name src | tar xzf - -C out && echo piped
rm -r src replay
"#;

const GIT: &str = r#"
git init -q -b main work; cd work
git config gc.autoDetach false; git config pack.threads 1
cp -r "$LIBRARY/src" .; git add -A; git commit -q -m one
git checkout -q -b side; mv src/lib.rs src/library.rs; git add -A; git commit -q -m two
git checkout -q main; echo text > new; ln -s new link; git add -A; git commit -q -m three
git merge -q -m merged side
git rm -q -r src/file; git commit -q -m four; git revert --no-edit HEAD > /dev/null
git stash -q 2>&1 || true; git status --porcelain
git gc -q --prune=now; git repack -q -a -d; git fsck --strict --no-progress
git log --format='%H %s' --name-status; git ls-files -s
git clone -q . ../clone; git -C ../clone rev-parse HEAD; git -C ../clone count-objects
git worktree add -q ../tree side; git -C ../tree status --porcelain -b
"#;

const DD: &str = r#"
for line in 1 2 3; do echo "line $line" | dd oflag=append conv=notrunc of=log status=none; done
cat log
for writer in a b c d; do
    (for line in 1 2 3 4 5 6 7 8 9 10; do
        echo "$writer $line" | dd oflag=append conv=notrunc of=many status=none
    done) &
done; wait
sort many > sorted; rm many; wc -l < sorted
dd if=/dev/zero of=zero bs=1M count=8 conv=fsync status=none
dd if=/dev/zero of=small bs=512 count=2000 status=none
echo middle | dd of=zero bs=1 seek=4194304 conv=notrunc status=none
dd if=zero bs=1 skip=4194304 count=6 status=none
dd if=/dev/zero of=sparse bs=1 count=1 seek=10M status=none; stat -c '%s %b' sparse
dd if=zero of=direct bs=4096 count=4 iflag=direct oflag=direct status=none; cmp -n 16384 zero direct
"#;

const SQLITE: &str = r#"
sqlite3 test.db 'PRAGMA journal_mode=wal; CREATE TABLE t (n INTEGER PRIMARY KEY, text);'
for writer in 1 2 3 4; do
    (for row in 1 2 3 4 5 6 7 8 9 10; do
        sqlite3 -cmd '.timeout 20000' test.db "INSERT INTO t (text) VALUES ('$writer')"
    done) &
done; wait
sqlite3 test.db 'SELECT text, count(*) FROM t GROUP BY text; PRAGMA integrity_check;'
sqlite3 test.db 'PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=delete; VACUUM;'
sqlite3 test.db 'SELECT count(*), sum(n) FROM t'; ls
"#;

/// Each way to write, by a user without privileges where this one can become one, and by this one.
const SET_IDS: &str = r#"
umask 0
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2> /dev/null; then
    may_change=yes
    other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
else
    may_change=no
    other() { "$@"; }
fi
for mode in 4777 2777 6777 2767 777; do
    for who in env other; do
        for how in append overwrite truncate allocate open; do
            file="$mode-$who-$how"; echo text > "$file"; chmod "$mode" "$file"
            case "$how" in
                append) $who sh -c 'echo more >> "$0"' "$file" ;;
                overwrite) $who dd if=/dev/zero of="$file" bs=1 count=1 conv=notrunc status=none ;;
                truncate) $who truncate -s 1 "$file" ;;
                allocate) $who fallocate -l 100 "$file" ;;
                open) $who sh -c ': >> "$0"' "$file" ;;
            esac
            echo "$file $(stat -c '%a %s' "$file")"
            # Once more: the first write may have left a memo that there is nothing to strip.
            chmod "$mode" "$file"; $who sh -c 'echo more >> "$0"' "$file"; stat -c '%a %s' "$file"
        done
    done
done
if [ "$may_change" = yes ]; then
    # In the file's group a set-group-id bit without execute stays.
    for mode in 2767 6777; do
        echo text > "group-$mode"; chgrp 65534 "group-$mode"; chmod "$mode" "group-$mode"
        other sh -c 'echo more >> "$0"' "group-$mode"; stat -c '%a %g' "group-$mode"
        chmod "$mode" "group-$mode"; chown 65534 "group-$mode"; stat -c '%a %u' "group-$mode"
    done
    mkdir -m 2777 shared; chgrp 65534 shared; mkdir shared/sub; other touch shared/file
    mkdir -m 1777 sticky; echo text > sticky/mine; other rm -f sticky/mine 2>&1 || true
    chmod 777 .; other mkdir own; other touch own/file; other ln -s file own/link; other mkfifo own/fifo
fi
"#;
