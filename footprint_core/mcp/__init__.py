"""Tools over MCP, both ways: those of a server for an agent, and those of this program for a client."""

from footprint_core.errors import McpToolError
from footprint_core.mcp.client import McpClient, mcp_client
from footprint_core.mcp.mock import MockMcpClient, mock_mcp_client
from footprint_core.mcp.serve import McpServing, mcp_serve

__all__ = [
    "McpClient",
    "McpServing",
    "McpToolError",
    "MockMcpClient",
    "mcp_client",
    "mcp_serve",
    "mock_mcp_client",
]
