/**
 * Three machines as network namespaces: two runners, and the desk with the database and the client.
 *
 * Each pair of machines has a wire of its own, a bridge in a fourth namespace. While a wire is cut, the bridge has lost
 * one of its ends: packets of both directions are dropped in silence, as by a switch that failed, and every machine
 * keeps its addresses, its routes and a network device that is up. The namespaces end with the processes that hold them.
 */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { createInterface } from "node:readline"

/** A connection that can be cut in silence. */
export interface Cut {
  readonly cut: () => void
  readonly heal: () => void
  /** How many packets the last cut dropped, where they can be counted. */
  readonly dropped?: () => number
}

/** The wires between the machines. */
export interface Network {
  /** Wires of a runner: to the desk, and to the other runner. */
  readonly runners: ReadonlyArray<{
    readonly host: string
    /** Turns a command into one that runs there. */
    readonly at: (command: string, args: ReadonlyArray<string>) => readonly [string, ReadonlyArray<string>]
    readonly links: { readonly database: Cut; readonly others: Cut }
  }>
  /** The address of the desk. */
  readonly host: string
}

/** Why this machine can have no such network; undefined where it can. */
export const refusal = (): string | undefined => {
  if (process.platform !== "linux") return "there are no network namespaces here"
  const pair = ["link", "add", "kernai0", "type", "veth", "peer", "name", "kernai1"]
  for (const args of [pair, ["link", "add", "kernai0", "type", "bridge"]]) {
    const { error, status, stderr } = spawnSync("unshare", ["--net", "ip", ...args], { encoding: "utf8" })
    if (status !== 0) return (error?.message ?? stderr.trim().split("\n")[0]) || `unshare ended with ${status}`
  }
  return undefined
}

/** Runs a command in a network namespace of its own, which is the desk. */
export const atDesk = (command: string, args: ReadonlyArray<string>) =>
  ["unshare", ["--net", command, ...args]] as const

const run = (command: string, args: ReadonlyArray<string>): void => {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8" })
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(" ")}: ${stderr}`)
}

const ip = (line: string): void => run("ip", line.split(" "))

/** Runs a command in the namespace of a process. */
const inside = ({ pid }: ChildProcess, command: string, args: ReadonlyArray<string>) =>
  ["nsenter", ["--target", String(pid), "--net", command, ...args]] as const

const ipAt = (place: ChildProcess | undefined, line: string): void =>
  place === undefined ? ip(line) : run(...inside(place, "ip", line.split(" ")))

/** How many packets have come to an end of a wire from its machine. */
const receivedBy = (place: ChildProcess, device: string): number => {
  const [command, args] = inside(place, "ip", ["-json", "-statistics", "link", "show", "dev", device])
  const found: ReadonlyArray<{ readonly stats64: { readonly rx: { readonly packets: number } } }> = JSON.parse(
    spawnSync(command, args, { encoding: "utf8" }).stdout
  )
  return found[0]?.stats64.rx.packets ?? 0
}

/** A process that holds a namespace, and ends with this one at the latest. */
const holder = Effect.acquireRelease(
  Effect.promise(async () => {
    const child = spawn("unshare", ["--net", "sh", "-c", "ip link set lo up && echo ready && read -r end"], {
      stdio: ["pipe", "pipe", "inherit"]
    })
    await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
    return child
  }),
  (child) => Effect.sync(() => void child.kill("SIGKILL"))
)

/** A machine: its own namespace, or that of this process. */
interface Place {
  readonly holder?: ChildProcess
  readonly host: string
}

/**
 * Lays a wire between two machines. A machine has one address, which it is reached by on all of its wires. Each end knows
 * the device of the other for good, or it would report a host that does not answer instead of sending packets to it.
 */
const wire = (hub: ChildProcess, name: string, ends: readonly [Place, Place]): Cut => {
  const bridge = `bridge-${name}`
  ipAt(hub, `link add ${bridge} type bridge`)
  ipAt(hub, `link set ${bridge} up`)
  for (const [index, { holder, host }] of ends.entries()) {
    const [near, far] = [`wire-${name}`, `end-${name}-${index}`]
    ip(`link add ${far} netns ${hub.pid} type veth peer name ${near} netns ${holder?.pid ?? process.pid}`)
    ipAt(hub, `link set ${far} master ${bridge} up`)
    ipAt(holder, `link set ${near} address 02:00:00:00:00:0${index} up`)
    const other = ends[1 - index]?.host
    ipAt(holder, `route add ${other}/32 dev ${near} src ${host}`)
    ipAt(holder, `neighbor add ${other} lladdr 02:00:00:00:00:0${1 - index} dev ${near} nud permanent`)
  }
  const sent = () => ends.reduce((sum, _, index) => sum + receivedBy(hub, `end-${name}-${index}`), 0)
  let [before, dropped] = [0, 0]
  return {
    cut: () => {
      ipAt(hub, `link set end-${name}-0 nomaster`)
      before = sent()
    },
    heal: () => {
      dropped = sent() - before
      ipAt(hub, `link set end-${name}-0 master ${bridge}`)
    },
    dropped: () => dropped
  }
}

/** The network around this process, which was started by `atDesk`. */
export const make: Effect.Effect<Network, never, Scope.Scope> = Effect.gen(function* () {
  const hub = yield* holder
  const desk: Place = { host: "10.77.0.1" }
  const first = { holder: yield* holder, host: "10.77.0.2" }
  const second = { holder: yield* holder, host: "10.77.0.3" }
  ip("link set lo up")
  for (const { holder, host } of [desk, first, second]) ipAt(holder, `addr add ${host}/32 dev lo`)
  const others = wire(hub, "runners", [first, second])
  const runners = [first, second].map(({ holder, host }, index) => ({
    host,
    at: (command: string, args: ReadonlyArray<string>) => inside(holder, command, args),
    links: { database: wire(hub, `desk${index}`, [desk, { holder, host }]), others }
  }))
  return { host: desk.host, runners }
})
