/**
 * Names tools among all skills: `mcp_<server>__<tool>`, with a hash at the end if that is too long or taken, so that a
 * tool has the same name in every process.
 */

import * as Effect from "effect/Effect"
import { sha256 } from "../../kit/sha256.ts"

export interface Remote {
  readonly server: string
  readonly tool: string
}

/** Names tools in order. A tool for which no name is left has none. */
export const assign = Effect.fnUntraced(function* (tools: ReadonlyArray<Remote>, isTaken: (name: string) => boolean) {
  const given = new Set<string>()
  const isFree = (name: string) => name.length <= longest && !given.has(name) && !isTaken(name)
  const names: Array<string | undefined> = []
  for (const { server, tool } of tools) {
    const plain = plainly({ server, tool })
    const hash = isFree(plain) ? undefined : yield* sha256(JSON.stringify([server, tool]))
    const name = hash === undefined ? plain : `${plain.slice(0, longest - 9)}_${hash.slice(0, 8)}`
    names.push(isFree(name) ? name : undefined)
    given.add(name)
  }
  return names
})

/** Returns the name of a tool if it is not taken. */
export const plainly = ({ server, tool }: Remote): string => `mcp_${local(server)}__${local(tool)}`

const longest = 64

const local = (name: string): string => name.replace(/[^A-Za-z0-9_-]/gu, "_")
