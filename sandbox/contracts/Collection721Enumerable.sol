// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {Collection721} from "./Collection721.sol";

/// An ERC-721 collection with the enumeration extension.
contract Collection721Enumerable is Collection721 {
    uint256[] private all;
    mapping(uint256 => uint256) private placeInAll;
    mapping(address => uint256[]) private owned;
    mapping(uint256 => uint256) private placeInOwned;

    constructor(string memory name_, string memory symbol_, string memory metadata_, address keeper_)
        Collection721(name_, symbol_, metadata_, keeper_)
    {}

    function supportsInterface(bytes4 id) public pure override returns (bool) {
        return id == 0x780e9d63 || super.supportsInterface(id);
    }

    function totalSupply() external view returns (uint256) {
        return all.length;
    }

    function tokenByIndex(uint256 index) external view returns (uint256) {
        require(index < all.length, "ERC721Enumerable: index out of bounds");
        return all[index];
    }

    function tokenOfOwnerByIndex(address holder, uint256 index) external view returns (uint256) {
        require(index < owned[holder].length, "ERC721Enumerable: index out of bounds");
        return owned[holder][index];
    }

    function _move(address from, address to, uint256 id, uint256 amount) internal override {
        super._move(from, to, id, amount);
        if (from == address(0)) _enter(all, placeInAll, id);
        else _leave(owned[from], placeInOwned, id);
        if (to == address(0)) _leave(all, placeInAll, id);
        else _enter(owned[to], placeInOwned, id);
    }

    function _enter(uint256[] storage list, mapping(uint256 => uint256) storage place, uint256 id) private {
        place[id] = list.length;
        list.push(id);
    }

    function _leave(uint256[] storage list, mapping(uint256 => uint256) storage place, uint256 id) private {
        uint256 last = list[list.length - 1];
        list[place[id]] = last;
        place[last] = place[id];
        list.pop();
        delete place[id];
    }
}
