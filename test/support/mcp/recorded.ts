/** The fake client of mcp.json, as a catalog of ours. */
import { Effect } from "effect"
import { KernelError } from "kernai"
import { McpProtocol } from "kernai/mcp"
import { read } from "../vectors.ts"

/** Something of the recorded client, as it stands in the file. */
export type Raw = { readonly [key: string]: unknown }

/** The file. */
export interface Vectors {
  readonly vectors: ReadonlyArray<{
    readonly id: string
    readonly request: string
    readonly result?: string
    readonly error?: { readonly message: string }
    readonly client_calls?: ReadonlyArray<unknown>
    readonly disputed?: string
  }>
  readonly config: ReadonlyArray<{
    readonly detect?: { readonly transport?: string; readonly command?: string; readonly url?: string }
    readonly transport?: string
    readonly disputed?: unknown
  }>
  readonly env_expansion: ReadonlyArray<{
    readonly env: { readonly [name: string]: string }
    readonly text: string
    readonly expanded: string
    readonly disputed?: unknown
  }>
  readonly seed: {
    readonly tools: ReadonlyArray<Raw>
    readonly resources: ReadonlyArray<Raw>
    readonly prompts: ReadonlyArray<Raw>
    readonly tool_results: Raw
  }
  readonly servers: ReadonlyArray<string>
}

export const file = read<Vectors>("mcp")

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)

/** A server is named by the `name` of its object, or by its text (BP-178). */
const serverOf = ({ server }: Raw): string | null => {
  if (typeof server === "object" && server !== null && "name" in server) return text(server.name)
  return server === null || server === undefined ? null : String(server)
}

export const failed = (detail: string) =>
  Effect.fail(new KernelError.McpError({ server: "fs", reason: "remote", detail }))

/** The catalog; what it is asked is noted in `calls`. */
export const catalog = (calls: Array<unknown> = []): McpProtocol.Catalog => {
  const of = <A extends { readonly server: string | null }>(server: string | undefined, entries: ReadonlyArray<A>) =>
    Effect.succeed(entries.filter((entry) => server === undefined || entry.server === server))
  return {
    servers: Effect.succeed(file.servers),
    tools: (server) =>
      of(
        server,
        file.seed.tools.map((tool): McpProtocol.ToolEntry => ({
          name: String(tool["name"]),
          description: text(tool["description"]),
          server: serverOf(tool),
          inputSchema: (tool["schema"] as McpProtocol.ToolEntry["inputSchema"]) ?? null,
          outputSchema: (tool["output_schema"] as McpProtocol.ToolEntry["outputSchema"]) ?? null,
          annotations: (tool["annotations"] as McpProtocol.ToolEntry["annotations"]) ?? null
        }))
      ),
    resources: (server) =>
      of(
        server,
        file.seed.resources.map((resource) => ({
          uri: String(resource["uri"]),
          name: text(resource["name"]),
          description: text(resource["description"]),
          mimeType: text(resource["mimeType"]),
          server: serverOf(resource)
        }))
      ),
    prompts: (server) =>
      of(
        server,
        file.seed.prompts.map((prompt) => ({
          name: String(prompt["name"]),
          description: text(prompt["description"]),
          arguments: (prompt["arguments"] as McpProtocol.PromptEntry["arguments"]) ?? null,
          server: serverOf(prompt)
        }))
      ),
    callTool: (name, input, server) => {
      calls.push(["call_tool", name, input, server ?? null])
      const answer = file.seed.tool_results[name]
      if (typeof answer === "object" && answer !== null && "raise" in answer) return failed(String(answer.raise))
      return Effect.succeed(McpProtocol.render(answer))
    },
    readResource: (uri, server) => {
      calls.push(["read_resource", uri, server ?? null])
      return Effect.succeed(McpProtocol.renderResource({ contents: [{ uri, text: `read ${uri}` }] }))
    },
    getPrompt: (name, input, server) => {
      calls.push(["get_prompt", name, input, server ?? null])
      return Effect.succeed(
        McpProtocol.renderPrompt({ messages: [{ role: "user", content: { type: "text", text: name } }] })
      )
    }
  }
}
