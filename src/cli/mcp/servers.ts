/**
 * The MCP servers of a config file. Sign-ins and accepted tools are stored in the user's data folder, the tools separately
 * for each config file.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as UserDirectories from "effect/persistence/UserDirectories"
import { sha256 } from "../../kit/sha256.ts"
import type * as McpConfig from "../../mcp/McpConfig.ts"
import * as McpHub from "../../mcp/McpHub.ts"
import * as TokenStore from "../../mcp/TokenStore.ts"
import * as ToolPins from "../../mcp/ToolPins.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import { asUsage, type CommandFailed, orUsage, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"

export const read = (file: string) => Effect.mapError(McpHub.readConfig(file), (error) => asUsage(error))

/** Reads one server of a config file. */
export const readOne = Effect.fnUntraced(function* (file: string, name: string) {
  const { servers } = yield* read(file)
  const server = servers.get(name)
  if (server === undefined) {
    return yield* usage(
      `there is no server '${excerpt(name, 80)}' in ${excerpt(file, 80)}; there are: ${[...servers.keys()].join(", ")}`
    )
  }
  const config: McpConfig.McpConfig = { servers: new Map([[name, server]]) }
  return config
})

export const layer = (file: string, config: McpConfig.McpConfig, options?: McpHub.Options) =>
  McpHub.layer(config, options).pipe(Layer.provide([storage(file), FetchHttpClient.layer]))

/** The servers of a session that an editor has opened. */
export type SessionServers = McpConfig.McpConfig["servers"]

/** Registers the tools of the servers of a file and of a session, in addition to other skills. */
export const registries = Effect.fnUntraced(function* <R>(
  file: string | undefined,
  session: SessionServers,
  skills: Layer.Layer<SkillRegistry, CommandFailed, R>
) {
  const config: McpConfig.McpConfig = file === undefined ? { servers: new Map() } : yield* read(file)
  const servers = layer(file ?? ".", { servers: new Map([...session, ...config.servers]) })
  return orUsage(Layer.provideMerge(servers, Layer.merge(skills, Layer.orDie(ProtocolRegistry.layer()))))
})

/** Stores sign-ins and accepted tools. */
export const storage = (file: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const path = yield* Path.Path
      const folder = path.join(yield* dataFolder, "mcp")
      const name = (yield* sha256(path.resolve(file))).slice(0, 16)
      return Layer.merge(
        TokenStore.layerFile(path.join(folder, "tokens")),
        ToolPins.layerFile(path.join(folder, "pins", `${name}.json`))
      )
    })
  )

const dataFolder = UserDirectories.UserDirectories.use((folders) => folders.data("kernai")).pipe(
  Effect.provide(UserDirectories.layer),
  Effect.mapError((error) => asUsage(error, "there is no data folder to store sign-ins in: "))
)
