/** What tools of a hub answer. */
import { Effect, Option, Stream } from "effect"
import { Content } from "kernai"
import { McpHub } from "kernai/mcp"

/** Waits until the status of the first server is as it should be. */
export const until = (holds: (status: McpHub.ServerStatus) => boolean) =>
  McpHub.McpHub.use((hub) =>
    Stream.runHead(Stream.filter(hub.changes, ([first]) => first !== undefined && holds(first)))
  ).pipe(Effect.map((found) => Option.getOrThrow(found)[0]!))

export const texts = (output: unknown) =>
  (output as ReadonlyArray<Content.Content>).map((part) => (part.type === "text" ? part.text : part.type))

export const sentence = <R>(effect: Effect.Effect<unknown, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as Error).message)
