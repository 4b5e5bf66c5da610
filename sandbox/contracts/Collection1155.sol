// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {Collection} from "./Collection.sol";

interface IReceiver1155 {
    function onERC1155Received(address operator, address from, uint256 id, uint256 amount, bytes calldata data)
        external
        returns (bytes4);

    function onERC1155BatchReceived(
        address operator,
        address from,
        uint256[] calldata ids,
        uint256[] calldata amounts,
        bytes calldata data
    ) external returns (bytes4);
}

/// An ERC-1155 collection that anybody may mint from.
contract Collection1155 is Collection {
    mapping(uint256 => mapping(address => uint256)) private balances;
    mapping(uint256 => uint256) public totalSupply;

    event TransferSingle(
        address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value
    );
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );
    event URI(string value, uint256 indexed id);

    constructor(string memory name_, string memory symbol_, string memory metadata_, address keeper_)
        Collection(name_, symbol_, metadata_, keeper_)
    {}

    function supportsInterface(bytes4 id) external pure returns (bool) {
        // ERC-165, ERC-1155 and its metadata extension.
        return id == 0x01ffc9a7 || id == 0xd9b67a26 || id == 0x0e89341c;
    }

    function uri(uint256 id) external view returns (string memory) {
        return _link(id);
    }

    function balanceOf(address holder, uint256 id) public view returns (uint256) {
        require(holder != address(0), "ERC1155: zero address holds nothing");
        return balances[id][holder];
    }

    function balanceOfBatch(address[] calldata accounts, uint256[] calldata ids)
        external
        view
        returns (uint256[] memory answer)
    {
        require(accounts.length == ids.length, "ERC1155: lengths differ");
        answer = new uint256[](ids.length);
        for (uint256 i = 0; i < ids.length; i++) answer[i] = balanceOf(accounts[i], ids[i]);
    }

    function mint(address to, uint256 id, uint256 amount) external {
        require(to != address(0), "ERC1155: mint to nobody");
        _move(address(0), to, id, amount);
    }

    function burn(address from, uint256 id, uint256 amount) external {
        _onlyAllowed(from);
        _move(from, address(0), id, amount);
    }

    function safeTransferFrom(address from, address to, uint256 id, uint256 amount, bytes calldata data) external {
        require(to != address(0), "ERC1155: transfer to nobody");
        _onlyAllowed(from);
        _move(from, to, id, amount);
        if (to.code.length != 0) {
            bytes4 answer = IReceiver1155(to).onERC1155Received(msg.sender, from, id, amount, data);
            require(answer == IReceiver1155.onERC1155Received.selector, "ERC1155: receiver refused");
        }
    }

    function safeBatchTransferFrom(
        address from,
        address to,
        uint256[] calldata ids,
        uint256[] calldata amounts,
        bytes calldata data
    ) external {
        require(to != address(0), "ERC1155: transfer to nobody");
        require(ids.length == amounts.length, "ERC1155: lengths differ");
        _onlyAllowed(from);
        for (uint256 i = 0; i < ids.length; i++) _shift(from, to, ids[i], amounts[i]);
        emit TransferBatch(msg.sender, from, to, ids, amounts);
        if (to.code.length != 0) {
            bytes4 answer = IReceiver1155(to).onERC1155BatchReceived(msg.sender, from, ids, amounts, data);
            require(answer == IReceiver1155.onERC1155BatchReceived.selector, "ERC1155: receiver refused");
        }
    }

    function _onlyAllowed(address from) private view {
        require(msg.sender == from || isApprovedForAll[from][msg.sender], "ERC1155: not yours to move");
    }

    function _shift(address from, address to, uint256 id, uint256 amount) private {
        if (from == address(0)) {
            totalSupply[id] += amount;
        } else {
            require(balances[id][from] >= amount, "ERC1155: not enough");
            balances[id][from] -= amount;
        }
        if (to == address(0)) totalSupply[id] -= amount;
        else balances[id][to] += amount;
    }

    function _move(address from, address to, uint256 id, uint256 amount) internal override {
        _shift(from, to, id, amount);
        emit TransferSingle(msg.sender, from, to, id, amount);
    }
}
