/**
 * The faults of the chaos. Each resolves once it is healed.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { setTimeout as sleep } from "node:timers/promises"
import * as Postgres from "../../support/postgres.ts"
import type { Running, Slot } from "./processes.ts"

/** What faults are done to. */
export interface World {
  readonly server: Postgres.Server
  readonly url: string
  readonly slots: ReadonlyArray<Slot>
  /** Processes that are stopped now. */
  readonly stopped: Set<Running>
  readonly lease: number
  readonly random: () => number
  /** Gives processes that start from now on the next version. */
  readonly nextVersion: () => void
  readonly findings: Array<string>
  /** Notes a fault, with its time. */
  readonly note: (what: string) => void
}

type Fault = (world: World) => Promise<void>

/** A process that works now. */
const victimOf = ({ random, slots }: World): Running | undefined => {
  const all = slots.flatMap((slot) => slot.now() ?? [])
  return all[Math.floor(random() * all.length)]
}

/** From half a lease, which is survived, to two of them. */
const whileOf = ({ lease, random }: World) => sleep(lease * (0.5 + 1.5 * random()))

const killed: Fault = async (world) => {
  const victim = victimOf(world)
  world.note(`kills ${victim?.name}`)
  victim?.signal("SIGKILL")
}

const stopped: Fault = async (world) => {
  const victim = victimOf(world)
  if (victim === undefined || world.stopped.has(victim)) return
  world.note(`stops ${victim.name}`)
  world.stopped.add(victim)
  victim.signal("SIGSTOP")
  await whileOf(world)
  victim.signal("SIGCONT")
  world.stopped.delete(victim)
  world.note(`continues ${victim.name}`)
}

const cutOff: Fault = async (world) => {
  const { links = [], name } = victimOf(world) ?? {}
  const some = links.filter(() => world.random() < 0.7)
  const which = `${some.length} of ${links.length} links of ${name}`
  world.note(`cuts ${which}`)
  for (const link of some) link.cut()
  await whileOf(world)
  for (const link of some) link.heal()
  world.note(`heals ${which}`)
}

/** Waits until a process has ended. Returns whether it ended in time, not counting the time that it is stopped. */
const endedWithin = async (running: Running, stopped: ReadonlySet<Running>, ms: number): Promise<boolean> => {
  let hasEnded = false
  void running.ended.then(() => (hasEnded = true))
  for (let left = ms; left > 0 && !hasEnded; left -= stopped.has(running) ? 0 : 100) await sleep(100)
  return hasEnded
}

/** Ends a process by SIGTERM, and waits for the next one. */
const replaced = async ({ findings, note, stopped }: World, slot: Slot): Promise<void> => {
  const running = slot.now()
  if (running === undefined) return
  note(`ends ${running.name}`)
  running.signal("SIGTERM")
  if (await endedWithin(running, stopped, 15_000)) note(`${running.name} has ended`)
  else {
    findings.push(`stuck: ${running.name} did not end after SIGTERM`)
    running.signal("SIGUSR2")
    await sleep(500)
    running.signal("SIGKILL")
  }
  for (let beat = 0; slot.now() === undefined && beat < 200; beat++) await sleep(50)
}

const restarted: Fault = async (world) => {
  const slot = world.slots[Math.floor(world.random() * world.slots.length)]
  if (slot !== undefined) await replaced(world, slot)
}

const rolledOut: Fault = async (world) => {
  world.nextVersion()
  world.note("rolls out the next version")
  for (const slot of world.slots) await replaced(world, slot)
}

const disconnected: Fault = async ({ note, url }) => {
  note("disconnects all from the database")
  const statement =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
  await SqlClient.SqlClient.use((sql) => sql.unsafe(statement)).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url) })),
    Effect.exit,
    Effect.runPromise
  )
}

const databaseRestarted: Fault = async ({ note, random, server }) => {
  const mode = random() < 0.5 ? "fast" : "immediate"
  note(`restarts the database, ${mode}`)
  Postgres.restart(server, mode)
  await sleep(2_000)
}

/** Each fault, with its share. */
export const faults: ReadonlyArray<readonly [name: string, fault: Fault, share: number]> = [
  ["killed", killed, 6],
  ["stopped", stopped, 3],
  ["cut off", cutOff, 3],
  ["restarted", restarted, 2],
  ["rolled out", rolledOut, 1],
  ["disconnected", disconnected, 2],
  ["database restarted", databaseRestarted, 1]
]

const whole = faults.reduce((sum, [, , share]) => sum + share, 0)

/** Chooses a fault by its share. */
export const chosen = (random: () => number): (typeof faults)[number] => {
  let left = random() * whole
  return faults.find(([, , share]) => (left -= share) < 0) ?? faults[0]!
}
