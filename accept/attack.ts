/**
 * The promises under attack: hostile values, texts, files, clocks, servers and frozen processes.
 */
import { existing, type Line } from "./support.ts"

export const attack = async (): Promise<ReadonlyArray<Line>> => [
  existing("1. values that code of a host throws, fails or dies with end a run typed", [
    "test/reliability/hostileValues.test.ts"
  ]),
  existing("2, 3. texts of failures are capped; typed failures reach the model with fields and media", [
    "test/toolbox/failures.test.ts"
  ]),
  existing("4. a worker that lost its run enters no write skill", [
    "test/durable/ownership.test.ts",
    "test/reliability/kills.test.ts"
  ]),
  existing("5, 23. leases go by the store's clock; claims name what they saw; a run that kills its process fails", [
    "test/worker"
  ]),
  existing("6. no file outside the folder is read through a link", ["test/file/replacedLinks.test.ts"]),
  existing("7. keys in a base URL's query stay out of spans", ["test/provider/tracedCall.test.ts"]),
  existing("8. every block of a reply counts", ["test/toolbox/manyBlocks.test.ts"]),
  existing("9. a recording whose writing outlasts the end of its body is kept", ["test/testing/Cassette.test.ts"]),
  existing("10. flipped bits in stored runs are noticed; negative zeros are kept", [
    "test/file/FileRunStore.test.ts",
    "test/file/damagedRuns.test.ts",
    "test/RunCodec.test.ts"
  ]),
  existing("11. media in recordings have their ids", ["test/RunEvent.test.ts"]),
  existing("12. MCP: empty content, malformed tools, hosts, charsets, rubbish on stdio", [
    "test/mcp/McpServe.test.ts",
    "test/mcp/McpConnection.test.ts",
    "test/mcp/Hostile.test.ts"
  ]),
  existing("12. MCP: frozen and hanging servers, polled streams, what is announced, metrics, status", [
    "test/mcp/frozenServer.test.ts",
    "test/mcp/jsonRpc.test.ts",
    "test/mcp/resumedStream.test.ts",
    "test/mcp/announced.test.ts",
    "test/mcp/mcpMetrics.test.ts",
    "test/mcp/McpHub.test.ts",
    "test/mcp/pinnedTools.test.ts"
  ]),
  existing("13. values that the types forbid are refused typed", ["test/reliability/forbiddenValues.test.ts"]),
  existing("14. unknown keys fail with the key, the place and the nearest right key", [
    "test/file/AgentFile.test.ts",
    "test/file/PolicyFile.test.ts",
    "test/mcp/McpConfig.test.ts"
  ]),
  existing("15. cut replies count what they used", ["test/provider/cutUsage.test.ts"]),
  existing("16, 18. /skills shows media inputs; produces is held; hooks choose providers; /tasks is live", [
    "test/toolbox/promises.test.ts"
  ]),
  existing("17. tests of processes wait for facts, not for a while", [
    "test/mcp/Hostile.test.ts",
    "test/mcp/McpConnection.test.ts",
    "test/examples/recovery.test.ts",
    "test/reliability/kills.test.ts"
  ]),
  existing("18. skill files by globs; a tree bounded over its life and at once", [
    "test/file/SkillFileLoader.test.ts",
    "test/workflow/budget.test.ts"
  ]),
  existing("18. generation options that a model does not take are dropped with an event", [
    "test/provider/droppedOptions.test.ts"
  ]),
  existing("19. traces say what the vendor sent", ["test/Telemetry.test.ts"]),
  existing("20. dates are date-time, lost patterns are named, and usage lines show types", [
    "test/kit/jsonSchema.test.ts",
    "test/toolbox/results.test.ts",
    "test/SkillRegistry.test.ts"
  ]),
  existing("21. suites for stores run twice over one database", ["test/testing/again.test.ts"]),
  existing("22. discovery, hidden tools and private files", [
    "test/mcp/OAuth.test.ts",
    "test/mcp/TokenStore.test.ts",
    "test/sql/SqlRunStore.test.ts"
  ])
]
