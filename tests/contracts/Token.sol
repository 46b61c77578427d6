// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A token for tests against a real node: an ordinary ERC-20, and what a gateway must not be confused by.
contract Token {
    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    /// Logs of other kinds stand before and between the transfers of one transaction.
    event Noise(address indexed from, address indexed to, uint256 value);

    constructor(string memory symbol_, uint8 decimals_) {
        name = symbol_;
        symbol = symbol_;
        decimals = decimals_;
        mint(msg.sender, 1e15);
    }

    function mint(address to, uint256 value) public {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) public returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    /// Two transfers in one transaction, at positions 1 and 3 of its receipt.
    function payTwo(address a, uint256 x, address b, uint256 y) external {
        emit Noise(msg.sender, a, x);
        move(msg.sender, a, x);
        emit Noise(msg.sender, b, y);
        move(msg.sender, b, y);
    }

    /// What arrives depends on the block that it is mined in: one whole token for each block below.
    function payByHeight(address to) external {
        move(msg.sender, to, block.number * 1e6);
    }

    /// Who gets what depends on it too: in every second block it is another token, for somebody else.
    function payInTurn(address to, Token other, address otherTo, uint256 value) external {
        if (block.number % 2 == 0) move(msg.sender, to, value);
        else other.mint(otherTo, value);
    }

    function payThenRevert(address to, uint256 value) external {
        move(msg.sender, to, value);
        revert("changed my mind");
    }

    /// What address poisoning looks like: a transfer of nothing, in anybody's name.
    function pretend(address from, address to) external {
        emit Transfer(from, to, 0);
    }

    function move(address from, address to, uint256 value) private {
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
