/**
 * MCP servers as skills and as a protocol.
 *
 * @since 0.1.0
 */

export * as McpConfig from "./McpConfig.ts"
export * as McpConnection from "./McpConnection.ts"
export * as McpDoctor from "./McpDoctor.ts"
export * as McpHub from "./McpHub.ts"
export * as McpProtocol from "./McpProtocol.ts"
export * as McpServe from "./McpServe.ts"
export * as OAuth from "./OAuth.ts"
export * as TokenStore from "./TokenStore.ts"
export * as ToolPins from "./ToolPins.ts"
