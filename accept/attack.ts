/**
 * The promises under attack, in the cases that `npm test` leaves to the long run: hostile values, texts, files, servers
 * and killed processes.
 */
import { existing, type Line } from "./support.ts"

export const attack = async (): Promise<ReadonlyArray<Line>> => [
  existing("values that code of a host throws, fails or dies with end a run typed", [
    "test/reliability/hostileValues.test.ts"
  ]),
  existing("texts of failures are capped; typed failures reach the model with fields and media", [
    "test/toolbox/failures.test.ts"
  ]),
  existing("processes killed at random moments enter no write skill twice", ["test/reliability/kills.test.ts"]),
  existing("no file outside the folder is read through a link", ["test/file/replacedLinks.test.ts"]),
  existing("flipped bits in stored runs are noticed", [
    "test/file/FileRunStore.test.ts",
    "test/file/damagedRuns.test.ts"
  ]),
  existing("MCP: empty content, malformed tools, hosts, charsets, rubbish on stdio", [
    "test/mcp/McpServe.test.ts",
    "test/mcp/McpConnection.test.ts",
    "test/mcp/Hostile.test.ts"
  ]),
  existing("MCP: what servers announce", ["test/mcp/announced.test.ts"]),
  existing("tests of processes wait for facts, not for a while", [
    "test/mcp/Hostile.test.ts",
    "test/mcp/McpConnection.test.ts",
    "test/examples/recovery.test.ts",
    "test/reliability/kills.test.ts"
  ]),
  existing("JSON Schemas of random skills, and their usage lines", [
    "test/kit/jsonSchema.test.ts",
    "test/SkillRegistry.test.ts"
  ]),
  existing("suites for stores run twice over one database", ["test/testing/again.test.ts"])
]
