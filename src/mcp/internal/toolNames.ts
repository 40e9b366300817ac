/**
 * Names of a server's tools among all skills: `mcp_<server>__<tool>` (AC-13).
 *
 * A name that is too long, or that somebody has already, ends in a hash of what
 * it stands for, so the same tool has the same name again in every process.
 */

import * as Effect from "effect/Effect"
import { sha256 } from "./definition.ts"

/** A tool by the names it has outside. */
export interface Remote {
  readonly server: string
  readonly tool: string
}

/**
 * Names tools in order; undefined when no name is left for one. `isTaken` tells what others
 * have, and a name given here is taken too.
 */
export const assign = Effect.fnUntraced(function* (tools: ReadonlyArray<Remote>, isTaken: (name: string) => boolean) {
  const given = new Set<string>()
  const isFree = (name: string) => name.length <= longest && !given.has(name) && !isTaken(name)
  const names: Array<string | undefined> = []
  for (const remote of tools) {
    const plain = plainly(remote)
    const name = isFree(plain) ? plain : yield* hashed(plain, remote)
    names.push(isFree(name) ? name : undefined)
    given.add(name)
  }
  return names
})

/** The name a tool has where nobody else has it. */
export const plainly = ({ server, tool }: Remote): string => `mcp_${local(server)}__${local(tool)}`

const longest = 64

const local = (name: string): string => name.replace(/[^A-Za-z0-9_-]/gu, "_")

const hashed = (plain: string, { server, tool }: Remote): Effect.Effect<string> =>
  Effect.map(sha256(JSON.stringify([server, tool])), (hash) => `${plain.slice(0, longest - 9)}_${hash.slice(0, 8)}`)
