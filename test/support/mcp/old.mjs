/** A server on an old release of the official SDK: `node old.mjs sdk-1-0 | sdk-1-12`. */
const sdk = process.argv[2]
const { Server } = await import(`${sdk}/server/index.js`)
const { StdioServerTransport } = await import(`${sdk}/server/stdio.js`)
const { CallToolRequestSchema, ListToolsRequestSchema } = await import(`${sdk}/types.js`)

const server = new Server({ name: sdk, version: "0" }, { capabilities: { tools: {} } })
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{ name: "echo", inputSchema: { type: "object", properties: { text: { type: "string" } } } }]
}))
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: "text", text: `${sdk}: ${params.arguments?.text}` }]
}))
await server.connect(new StdioServerTransport())
