/** The lines about servers of the Model Context Protocol and about secrets. Each is a promise, and its tests. */
export const wireMcp: ReadonlyArray<readonly [line: string, files: ReadonlyArray<string>]> = [
  ["what can be read of an MCP result, resource or prompt is read", ["test/mcp/readableResult.test.ts"]],
  ["a call that reports progress is not given up at its timeout", ["test/mcp/progressTimeout.test.ts"]],
  ["a server that is killed in the middle of a call leaves an unknown outcome", ["test/mcp/killedServer.test.ts"]],
  ["questions of one call have keys of their own, and a repeated call is known again", ["test/mcp/serveAsks.test.ts"]],
  [
    "an error that repeats a key in another encoding shows nothing of it",
    [
      "test/provider/encodedKeys.test.ts",
      "test/provider/vendorWords.test.ts",
      "test/mcp/echoedKeys.test.ts",
      "test/http/a2aKeys.test.ts"
    ]
  ]
]
