/**
 * MCP servers as skills and as a protocol.
 *
 * @since 0.1.0
 */

/**
 * @category configuration
 * @since 0.1.0
 */
export * as McpConfig from "./McpConfig.ts"
/**
 * @category connections
 * @since 0.1.0
 */
export * as McpConnection from "./McpConnection.ts"
/**
 * @category configuration
 * @since 0.1.0
 */
export * as McpDoctor from "./McpDoctor.ts"
/**
 * @category connections
 * @since 0.1.0
 */
export * as McpHub from "./McpHub.ts"
/**
 * @category protocols
 * @since 0.1.0
 */
export * as McpProtocol from "./McpProtocol.ts"
/**
 * @category servers
 * @since 0.1.0
 */
export * as McpServe from "./McpServe.ts"
/**
 * @category sign-in
 * @since 0.1.0
 */
export * as OAuth from "./OAuth.ts"
/**
 * @category sign-in
 * @since 0.1.0
 */
export * as TokenStore from "./TokenStore.ts"
/**
 * @category pins
 * @since 0.1.0
 */
export * as ToolPins from "./ToolPins.ts"
