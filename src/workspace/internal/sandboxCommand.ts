/**
 * The command line of bubblewrap for a sandbox: namespaces of its own for everything, the programs of the host read-only,
 * and of its data nothing but the root.
 */

/** What a sandbox allows. */
export interface Sandbox {
  readonly root: string
  readonly network: boolean
  /** Real paths inside the root that commands may write. */
  readonly writable: ReadonlyArray<string>
  /** Real paths that commands may read besides the programs of the system. */
  readonly readable: ReadonlyArray<string>
}

/** Folders and files of the host that programs need. Those that do not exist are left out. */
const system = (
  "/usr /bin /sbin /lib /lib32 /lib64 /nix/store /etc/alternatives /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d " +
  "/etc/localtime /etc/mime.types /etc/nsswitch.conf /etc/passwd /etc/group /etc/ssl /etc/pki /etc/ca-certificates"
).split(" ")

/** Settings of the kernel, which a process of root could write even without capabilities. */
const kernel = ["/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/acpi", "/proc/fs", "/proc/scsi"]

const names = ["/etc/resolv.conf", "/etc/hosts", "/etc/services"]

/** Returns the arguments of bubblewrap, before the program that it runs. */
export const sandboxArguments = ({ network, readable, root, writable }: Sandbox): ReadonlyArray<string> => [
  ...words("bwrap --unshare-all --unshare-user --disable-userns --die-with-parent --new-session --cap-drop ALL"),
  ...words(`--hostname workspace ${network ? "--share-net" : ""}`),
  ...[...system, ...(network ? names : [])].flatMap((path) => ["--ro-bind-try", path, path]),
  ...words("--proc /proc"),
  ...kernel.flatMap((path) => ["--ro-bind-try", path, path]),
  ...words("--dev /dev --tmpfs /tmp --dir /tmp/home"),
  ...readable.flatMap((path) => ["--ro-bind", path, path]),
  writable.includes(root) ? "--bind" : "--ro-bind",
  root,
  root,
  ...writable.flatMap((path) => (path === root ? [] : ["--bind", path, path])),
  // Git of the host would run what these name. A mount of its own cannot be renamed.
  ...(writable.includes(root) ? ["--bind-try", `${root}/.git`, `${root}/.git`] : []),
  ...["hooks", "config"].flatMap((name) => ["--ro-bind-try", `${root}/.git/${name}`, `${root}/.git/${name}`]),
  "--chdir",
  root,
  "--"
]

const words = (text: string): ReadonlyArray<string> => text.split(" ").filter((word) => word !== "")
