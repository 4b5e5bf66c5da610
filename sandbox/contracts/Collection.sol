// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// What the three kinds of collection share: names, where metadata live, and the keeper who may settle in bulk.
abstract contract Collection {
    /// A change of ownership; the zero address mints as `from` and burns as `to`. ERC-721 ignores the amount.
    struct Move {
        address from;
        address to;
        uint256 id;
        uint256 amount;
    }

    string public name;
    string public symbol;
    address public owner;
    address internal immutable keeper;
    string internal metadata;

    mapping(address => mapping(address => bool)) public isApprovedForAll;

    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    constructor(string memory name_, string memory symbol_, string memory metadata_, address keeper_) {
        name = name_;
        symbol = symbol_;
        metadata = metadata_;
        keeper = keeper_;
        owner = msg.sender;
    }

    function setApprovalForAll(address operator, bool approved) external {
        isApprovedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    /// Many moves in one transaction, with the same events as single ones; for the keeper alone.
    function settle(Move[] calldata moves) external {
        require(msg.sender == keeper, "Collection: keeper only");
        for (uint256 i = 0; i < moves.length; i++) {
            _move(moves[i].from, moves[i].to, moves[i].id, moves[i].amount);
        }
    }

    function _move(address from, address to, uint256 id, uint256 amount) internal virtual;

    /// metadata/<this contract>/<id in decimal>
    function _link(uint256 id) internal view returns (string memory) {
        return string.concat(metadata, _hex(address(this)), "/", _decimal(id));
    }

    function _hex(address value) private pure returns (string memory) {
        bytes memory text = new bytes(42);
        bytes16 digits = "0123456789abcdef";
        uint160 rest = uint160(value);
        for (uint256 i = 41; i > 1; i--) {
            text[i] = digits[rest & 15];
            rest >>= 4;
        }
        text[0] = "0";
        text[1] = "x";
        return string(text);
    }

    function _decimal(uint256 value) private pure returns (string memory) {
        if (value == 0) return "0";
        uint256 length;
        for (uint256 rest = value; rest != 0; rest /= 10) length++;
        bytes memory text = new bytes(length);
        for (; value != 0; value /= 10) text[--length] = bytes1(uint8(48 + (value % 10)));
        return string(text);
    }
}
